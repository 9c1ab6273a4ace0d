//! What follows from a ban itself: its prefix, how long it is remembered, and its worth; whose it
//! is; and the places of several bans of a prefix.

mod origin;
mod places;

use std::{cmp::Reverse, net::IpAddr};

use ipnet::IpNet;
use limiter_common::ban::{Ban, BanKey};

pub use self::{
    origin::{InvalidOrigin, Origin},
    places::{Change, MOST_ORIGINS, arranged, with, without},
};

/// The longest time that an ended ban is remembered, in nanoseconds: a day.
const LONGEST_MEMORY: u64 = 24 * 3_600_000_000_000;

/// Returns when a ban is forgotten, in nanoseconds of the decision's clock: after its end, it is
/// remembered for as long as it lasted, at most a day. Until then it counts if its prefix is banned
/// again.
#[must_use]
pub fn forgotten_at(ban: &Ban) -> u64 {
    // A ban from before a reboot began before the clock.
    let lasted_ns = ban.until_ns.wrapping_sub(ban.since_ns);
    ban.until_ns.saturating_add(lasted_ns.min(LONGEST_MEMORY))
}

/// Returns a sort key, best first, for bans to keep when there is no room for all: bans by hand
/// before those of limits, which a forger can cause, then those that end last.
#[must_use]
pub const fn worth(ban: &Ban) -> (bool, Reverse<u64>) {
    (ban.is_automatic(), Reverse(ban.until_ns))
}

/// Returns a ban's prefix.
#[must_use]
pub fn prefix_of(key: &BanKey) -> IpNet {
    let address = IpAddr::from(key.address());
    let length = u8::try_from(key.prefix_length()).unwrap_or(u8::MAX);
    // No ban has a prefix longer than an address.
    IpNet::new(address, length).unwrap_or_else(|_| address.into())
}
