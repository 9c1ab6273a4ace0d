//! Asks the kernel's connection tracking which TCP connections there are, and hears of them.
//!
//! The attributes are read here: netlink-packet-netfilter 0.4 knows neither the number of a connection
//! nor how to read one without a dozen allocations, and there may be a million.

mod events;
mod filter;
pub(crate) mod host;
mod message;
mod tracked;

#[cfg(test)]
mod tests;

use self::message::{Message, assured};
pub(crate) use self::{
    events::{Events, Heard},
    tracked::{Tracked, Tuple},
};
use super::{Channel, DumpError};

/// Asks for the TCP connections of which both ways were seen, in this thread's network namespace.
pub(crate) async fn ask<T>(
    conntrack: &mut Channel,
    mut keep: impl FnMut(Tracked) -> Option<T>,
) -> Result<Vec<T>, DumpError> {
    let keep = |message| match message {
        Message::There(Some(tracked)) => keep(tracked),
        _ => None,
    };
    conntrack.dump(Message::Ask, &assured(), keep).await
}
