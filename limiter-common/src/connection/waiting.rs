//! Decides which limits on connections let a client in that may have to stand in line.

use super::{Opening, Place, queue::Turn};
use crate::policy::Tables;

/// The look-ups for one packet, the first of a connection.
pub trait Entrance {
    /// Returns the place where the limit at an index counts the owner's connections.
    fn place_at(&self, limit_index: u32) -> Option<Place>;

    /// Returns the number of open connections at a place.
    fn open(&self, place: Place) -> u64;

    /// Calls [`Queues::ahead`](super::queue::Queues::ahead) of the queue at an index, for all clients that
    /// wait at a place.
    fn waiting(&self, index: usize, place: Place) -> u64;

    /// Calls [`turn`](super::queue::turn) of the queue at an index, with the place, the
    /// [hash](super::Ends::hash) of the packet's ends, and the room at the place.
    fn turn(&self, index: usize, place: Place, room: u64) -> Turn;
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
    let shape = tables.shape();
    let queueing = shape.queueing;
    if full & !queueing & !shape.observing != 0 {
        let waiting = full & queueing;
        return Refusals { full, waiting };
    }
    let matched = opening.matched();
    let is_known = !shape.uses_standing() || opening.is_of_known_source();
    // Opaque, so that the verifier walks each round once.
    let mut full = tables.opaque(full & !queueing);
    let mut waiting = tables.opaque(0);
    let mut rest = shape.connections;
    for index in 0..shape.queues.len() {
        if rest == 0 {
            break;
        }
        let limit_index = rest.trailing_zeros();
        rest &= rest.wrapping_sub(1);
        if matched & queueing & (1 << limit_index) == 0 {
            continue;
        }
        let most = opening.most_at(tables, limit_index);
        let (Some(place), Some(most)) = (entrance.place_at(limit_index), most) else {
            continue;
        };
        let mut room = most.saturating_sub(entrance.open(place));
        let mut place = place;
        if !is_known {
            room = room.saturating_sub(entrance.waiting(index, place));
            place = place.of_unknown();
        }
        // Opaque for the same reason.
        let (place, room) = (Place(tables.opaque(place.0)), tables.opaque(room));
        let turn = tables.opaque(entrance.turn(index, place, room) as u64);
        // Not branches: the verifier would walk them in each round.
        full |= (turn & 1) << limit_index;
        waiting |= (turn >> 1 & 1) << limit_index;
    }
    Refusals { full, waiting }
}
