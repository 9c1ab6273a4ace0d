//! Compiles limits on open connections, their queues, and limits on handshakes.

use limiter_common::{
    connection::{MOST_LIMITS, queue::QueueSettings},
    policy::Features,
};

use super::limit_sets::set_of;
use crate::policy::{Limit, Mode};

/// Returns the features about connections.
pub(super) fn features(limits: &[Limit]) -> Features {
    Features {
        connections: set_of(limits, Limit::counts_connections),
        queueing: set_of(limits, |limit| settings(limit) != QueueSettings::NONE),
        queues: of_each(limits),
        earlier_of_group: earlier_of_group(limits),
        handshakes: set_of(limits, Limit::counts_handshakes),
        ..Features::EMPTY
    }
}

/// Returns the queue of each limit on connections, in their order.
fn of_each(limits: &[Limit]) -> [QueueSettings; MOST_LIMITS] {
    let counted = limits.iter().filter(|limit| limit.counts_connections());
    let mut of_each = [QueueSettings::NONE; MOST_LIMITS];
    for (queue, limit) in of_each.iter_mut().zip(counted) {
        *queue = settings(limit);
    }
    of_each
}

/// Returns, for each limit on connections in order, the set of earlier limits in its group: of these, the
/// first match counts.
fn earlier_of_group(limits: &[Limit]) -> [u64; MOST_LIMITS] {
    let counted = limits.iter().filter(|limit| limit.counts_connections());
    let mut of_each = [0; MOST_LIMITS];
    for (earlier, limit) in of_each.iter_mut().zip(counted) {
        *earlier = set_of(limits, |other| {
            other.id < limit.id && limit.shares_count(other)
        });
    }
    of_each
}

fn settings(limit: &Limit) -> QueueSettings {
    let queue = limit.queue.filter(|_| limit.mode == Mode::Enforce);
    queue.map_or(QueueSettings::NONE, |queue| QueueSettings {
        limit: limit.id.0.into(),
        size: queue.size,
        max_age_ns: queue.max_age_ns,
    })
}
