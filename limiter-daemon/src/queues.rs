//! The status of the queues in which clients wait for limits on connections.

use std::collections::{BTreeMap, HashMap};

use limiter_common::connection::queue::QueueEvent;
use limiter_datapath::kernel::{Datapath, DatapathError, QueueMaps, monotonic_now};

use limiter_protocol::QueueStatus;

pub(super) fn by_limit(datapath: &Datapath) -> Result<BTreeMap<u16, QueueStatus>, DatapathError> {
    let limits = datapath.manifest().policy.limits.iter();
    let queues: Vec<_> = limits
        .filter_map(|limit| Some((limit.id, limit.queue?)))
        .collect();
    let (false, Some(maps)) = (queues.is_empty(), datapath.source_maps()) else {
        return Ok(BTreeMap::new());
    };
    let maps = maps.connections().queues();
    let mut waiting = waiting(datapath, maps)?;
    let statuses = queues.into_iter().map(|(limit, queue)| {
        let traffic = maps.traffic(limit)?;
        let status = QueueStatus {
            waiting: waiting.remove(&limit.0.into()).unwrap_or_default(),
            size: queue.size,
            queued: traffic.count(QueueEvent::Queued),
            resumed: traffic.count(QueueEvent::Resumed),
            expired: traffic.count(QueueEvent::Expired),
            rejected: traffic.count(QueueEvent::Rejected),
            waits: traffic.waits.to_vec(),
            waited_ns: traffic.waited_ns,
        };
        Ok((limit.0, status))
    });
    statuses.collect()
}

/// Returns the number of clients that wait for each limit, by its interned id.
fn waiting(datapath: &Datapath, maps: &QueueMaps) -> Result<HashMap<u64, u64>, DatapathError> {
    let queues: HashMap<_, _> = maps.all()?.into_iter().collect();
    let now_ns = monotonic_now();
    let mut waiting = HashMap::new();
    for (key, ticket) in maps.tickets()? {
        let Some(queue) = queues.get(&key.count_id()) else {
            continue;
        };
        let max_age_ns = datapath.queue_of(queue.limit).max_age_ns;
        if !ticket.is_expired(max_age_ns, now_ns) {
            *waiting.entry(queue.limit).or_default() += 1;
        }
    }
    Ok(waiting)
}
