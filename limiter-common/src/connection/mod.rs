//! TCP connections open at once: whose they are, and how many.
//!
//! The network stack says which connections are open: from established to closed, half-closed ones
//! too. So no packet changes a count, and nobody can forge one. Each open connection is noted by its
//! socket's cookie, with where it was counted: its end takes off exactly what it put on, whatever the
//! policy has become.

pub mod count;
pub mod crowding;
mod handshake;
pub mod line;
pub mod note;
mod opening;
mod order;
mod place;
pub mod queue;
mod route;
mod waiting;

pub use self::{
    handshake::{Token, Toll, each_limit, toll},
    opening::{Opening, counting, find_places, full_for},
    order::{ConnectionOrder, Ends},
    place::{Place, Places},
    route::RouteFields,
    waiting::{Entrance, Refusals, stand_in_line},
};
pub use crate::limit::MAX_CONNECTION_LIMITS as MOST_LIMITS;
