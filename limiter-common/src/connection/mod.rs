//! TCP connections open at once: their keys and their number.
//!
//! The network stack reports which connections are open: from established to closed, half-closed ones
//! included. So no packet changes a count, and no client can forge one. Each open connection has an entry,
//! found by its socket's cookie, with the index of its count: its end is subtracted exactly where it was
//! added, even if the policy has changed since.

pub mod count;
mod count_id;
pub mod crowding;
pub mod entry;
mod handshake;
pub mod line;
mod opening;
mod order;
pub mod queue;
mod route;
mod waiting;

pub use self::{
    count_id::{CountId, CountIds},
    handshake::{HandshakeCharge, HandshakeToken, each_limit, handshake_charge},
    opening::{Opening, counting, find_count_ids, full_for},
    order::{ConnectionOrder, Ends},
    route::RouteFields,
    waiting::{Entrance, Refusals, stand_in_line},
};
pub use crate::limit::MAX_CONNECTION_LIMITS as MOST_LIMITS;
