//! TCP connections from the kernel's connection tracking: a dump of all of them, and events.
//!
//! The attributes are parsed here: netlink-packet-netfilter 0.4 does not know a connection's id, and takes a
//! dozen allocations to read one connection, while there may be a million.

mod events;
mod filter;
pub mod host;
mod message;
mod tracked;

#[cfg(test)]
mod tests;

use self::message::{Message, assured};
pub use self::{
    events::{ConntrackEvent, Events},
    tracked::{TrackedConnection, Tuple},
};
use super::{Channel, DumpError};

/// Dumps the TCP connections with packets seen both ways, in this thread's network namespace.
pub async fn dump_connections<T>(
    conntrack: &mut Channel,
    mut keep: impl FnMut(TrackedConnection) -> Option<T>,
) -> Result<Vec<T>, DumpError> {
    let keep = |message| match message {
        Message::There(Some(tracked)) => keep(tracked),
        _ => None,
    };
    conntrack.dump(Message::Request, &assured(), keep).await
}
