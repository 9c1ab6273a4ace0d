//! TCP connections open at once: their owners and their number.
//!
//! The network stack reports which connections are open: from established to closed, half-closed ones
//! included. So no packet changes a count, and no client can forge one. Each open connection has a note,
//! found by its socket's cookie, with the place of its count: its end is subtracted exactly where it was
//! added, even if the policy has changed since.

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
