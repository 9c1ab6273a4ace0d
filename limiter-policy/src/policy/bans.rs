//! Derived properties of a ban: its prefix, the time that it is remembered, and its worth. The submodules
//! have the origins of bans, and the positions of several bans of one prefix.

mod origin;
mod positions;

use std::{cmp::Reverse, net::IpAddr};

use ipnet::IpNet;
use limiter_common::ban::{Ban, BanKey};

pub use self::{
    origin::{InvalidOrigin, Origin},
    positions::{Change, MOST_ORIGINS, arranged, with, without},
};

/// The longest time that an ended ban is remembered, in nanoseconds: a day.
const LONGEST_MEMORY: u64 = 24 * 3_600_000_000_000;

/// Returns the time when a ban is forgotten, in nanoseconds of the decision's clock. An ended ban is
/// remembered for as long as it lasted, at most a day. Until then it lengthens the next ban of its prefix.
#[must_use]
pub fn forgotten_at(ban: &Ban) -> u64 {
    // A ban from before a reboot has a start before the clock's zero, so the difference wraps.
    let lasted_ns = ban.until_ns.wrapping_sub(ban.since_ns);
    ban.until_ns.saturating_add(lasted_ns.min(LONGEST_MEMORY))
}

/// Returns a sort key, best first, for choosing bans when room is short: manual bans, then bans by limits,
/// as a forger can cause the latter; within both, the latest end first.
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
