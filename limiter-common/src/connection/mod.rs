//! TCP connections open at once: whose they are, and how many.
//!
//! The network stack says which connections are open: from established to closed, half-closed ones
//! too. So no packet changes a count, and nobody can forge one. Each open connection is noted by its
//! socket's cookie, with the [`Places`] where it was counted: its end takes off exactly what it put
//! on, whatever the policy has become.

mod count;
mod order;
mod place;
pub mod queue;
mod waiting;

pub use self::{
    count::{HALF, LINES, MOST_OPEN, SLOTS, Slots, add, open, open_in_half, take_off},
    order::{ConnectionOrder, Ends},
    place::{Place, Places, full, place_at, places},
    waiting::{Entrance, Refusals, stand_in_line},
};
pub use crate::limit::MAX_CONNECTION_LIMITS as MOST_LIMITS;
