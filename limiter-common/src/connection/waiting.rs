//! Decides which limits on connections let a client in that may have to stand in line.

use super::{CountId, Opening, queue::Turn};
use crate::policy::Tables;

/// The look-ups for one packet, the first of a connection.
pub trait Entrance {
    /// Returns the count id under which the limit at an index counts the key's connections.
    fn count_id_at(&self, limit_index: u32) -> Option<CountId>;

    /// Returns the number of open connections under a count id.
    fn open(&self, count_id: CountId) -> u64;

    /// Calls [`Queues::ahead`](super::queue::Queues::ahead) of the queue at an index, for all clients that
    /// wait under a count id.
    fn waiting(&self, index: usize, count_id: CountId) -> u64;

    /// Calls [`turn`](super::queue::turn) of the queue at an index, with the count id, the
    /// [hash](super::Ends::hash) of the packet's ends, and the room under the count id.
    fn turn(&self, index: usize, count_id: CountId, room: u64) -> Turn;
}

/// The limits on connections that refuse a packet, as bits by limit index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// The limits without room for its connection, or with room only for others.
    pub full: u64,
    /// Among them the limits with a queue that the client waits in: no answer may make it give up.
    pub waiting: u64,
}

/// Returns the limits on connections that count the new connection and do not let it in: limits in `full`,
/// which have no room, and limits where other clients wait.
///
/// If a limit without a queue refuses it, it stands in no line. Sources of unknown standing, which may be
/// forged, wait behind all others, in a queue of their own.
#[inline(always)]
pub fn stand_in_line<T: Tables, E: Entrance>(
    tables: &T,
    opening: &Opening<'_>,
    full: u64,
    entrance: &E,
) -> Refusals {
    let features = tables.features();
    let queueing = features.queueing;
    if full & !queueing & !features.observing != 0 {
        let waiting = full & queueing;
        return Refusals { full, waiting };
    }
    let matched = opening.matched();
    let is_known = !features.uses_standing() || opening.is_of_known_source();
    // Opaque, so that the verifier walks each round once.
    let mut full = tables.opaque(full & !queueing);
    let mut waiting = tables.opaque(0);
    let mut rest = features.connections;
    for index in 0..features.queues.len() {
        if rest == 0 {
            break;
        }
        let limit_index = rest.trailing_zeros();
        rest &= rest.wrapping_sub(1);
        if matched & queueing & (1 << limit_index) == 0 {
            continue;
        }
        let most = opening.most_at(tables, limit_index);
        let (Some(count_id), Some(most)) = (entrance.count_id_at(limit_index), most) else {
            continue;
        };
        let mut room = most.saturating_sub(entrance.open(count_id));
        let mut count_id = count_id;
        if !is_known {
            room = room.saturating_sub(entrance.waiting(index, count_id));
            count_id = count_id.of_unknown();
        }
        // Opaque for the same reason.
        let (count_id, room) = (CountId(tables.opaque(count_id.0)), tables.opaque(room));
        let turn = tables.opaque(entrance.turn(index, count_id, room) as u64);
        // Not branches: the verifier would walk them in each round.
        full |= (turn & 1) << limit_index;
        waiting |= (turn >> 1 & 1) << limit_index;
    }
    Refusals { full, waiting }
}
