//! Which limits on connections let a client in that may have to stand in line.

use super::{Place, place::most_at, queue::Flow};
use crate::{judged::Packet, policy::Tables};

/// The questions about one packet, the first of a connection.
pub trait Entrance {
    /// Returns where the owner's connections are counted by the limit at an index.
    fn place_at(&self, limit_index: u32) -> Option<Place>;

    /// Returns how many connections are open at a place.
    fn open(&self, place: Place) -> u64;

    /// Returns whether the source of the packet is known, or nobody asks for that.
    fn is_known(&self) -> bool;

    /// Calls [`Queues::ahead`](super::queue::Queues::ahead) of the queue at an index, for all who wait at
    /// a place.
    fn waiting(&self, index: usize, place: Place) -> u64;

    /// Calls [`may_enter`](super::queue::may_enter) of the queue at an index, with the place, the
    /// connection, and the room there.
    fn may_enter(&self, index: usize, place: Place, flow: Flow, room: u64) -> bool;
}

/// Returns those of the limits on connections in `matched`, which count the packet, that do not let in
/// the connection of which it is the first: those in `full`, which have no room, and those where
/// others wait.
///
/// `connection`: the hash of the packet's [ends](super::Ends::hash). If another limit refuses the
/// packet, nobody stands in line. Sources of unknown standing, which may be forged, wait behind all
/// others, in a queue of their own.
#[inline(always)]
pub fn stand_in_line<T: Tables, E: Entrance>(
    tables: &T,
    packet: &Packet,
    matched: u64,
    full: u64,
    connection: u64,
    entrance: &E,
) -> u64 {
    let shape = tables.shape();
    let queueing = shape.queueing;
    if full & !queueing & !shape.observing != 0 {
        return full;
    }
    let is_known = matched & queueing == 0 || entrance.is_known();
    // As in `full`.
    let mut full = tables.opaque(full & !queueing);
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
        let most = most_at(tables, packet, limit_index);
        let (Some(place), Some(most)) = (entrance.place_at(limit_index), most) else {
            continue;
        };
        let mut room = most.saturating_sub(entrance.open(place));
        let mut place = place;
        if !is_known {
            room = room.saturating_sub(entrance.waiting(index, place));
            place = place.of_unknown();
        }
        let flow = Flow::new(connection, shape.queues[index].limit);
        let is_refused = u64::from(!entrance.may_enter(index, place, flow, room));
        full |= tables.opaque(is_refused) << limit_index;
    }
    full
}
