//! Which limits on connections let a client in that may have to stand in line.

use super::{Opening, Place, queue::Turn};
use crate::policy::Tables;

/// The questions about one packet, the first of a connection.
pub trait Entrance {
    /// Returns where the owner's connections are counted by the limit at an index.
    fn place_at(&self, limit_index: u32) -> Option<Place>;

    /// Returns how many connections are open at a place.
    fn open(&self, place: Place) -> u64;

    /// Calls [`Queues::ahead`](super::queue::Queues::ahead) of the queue at an index, for all who wait at
    /// a place.
    fn waiting(&self, index: usize, place: Place) -> u64;

    /// Calls [`turn`](super::queue::turn) of the queue at an index, with the place, the
    /// [hash](super::Ends::hash) of the packet's ends, and the room at the place.
    fn turn(&self, index: usize, place: Place, room: u64) -> Turn;
}

/// Which limits on connections refuse a packet, as bits by limit index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Those that have no room for the connection that it would open, or only for others.
    pub full: u64,
    /// Those of them whose client waits: nothing may tell it to give up.
    pub waiting: u64,
}

/// Returns those of the limits on connections that count one that would open and do not let it in: those in
/// `full`, which have no room, and those where others wait.
///
/// If another limit refuses it, nobody stands in line. Sources of unknown standing, which may be
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
    // The verifier knows nothing of them, and so walks each round once.
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
        // As above.
        let (place, room) = (Place(tables.opaque(place.0)), tables.opaque(room));
        let turn = tables.opaque(entrance.turn(index, place, room) as u64);
        // Not branches, which the verifier would walk in each round.
        full |= (turn & 1) << limit_index;
        waiting |= (turn >> 1 & 1) << limit_index;
    }
    Refusals { full, waiting }
}
