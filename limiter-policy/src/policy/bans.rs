//! What of a ban follows from the ban itself: its prefix, how long it is known, and which is worth more.

use std::{cmp::Reverse, net::IpAddr};

use ipnet::IpNet;
use limiter_common::ban::{Ban, BanKey};

/// The longest that an ended ban is known for, in nanoseconds: a day.
const LONGEST_MEMORY: u64 = 24 * 3_600_000_000_000;

/// When a ban is not known any more, in nanoseconds of the decision's clock: when it has ended for
/// as long as it lasted, or for a day. Until then it counts when its prefix is banned again.
#[must_use]
pub fn forgotten_at(ban: &Ban) -> u64 {
    // One from before a reboot began before the clock.
    let lasted_ns = ban.until_ns.wrapping_sub(ban.since_ns);
    ban.until_ns.saturating_add(lasted_ns.min(LONGEST_MEMORY))
}

/// Which bans are kept where there is no room for all: those by hand before those of limits, which
/// a forger can have made, and of either those that end last. In ascending order.
#[must_use]
pub const fn worth(ban: &Ban) -> (bool, Reverse<u64>) {
    (ban.is_automatic(), Reverse(ban.until_ns))
}

/// The prefix that a ban is for.
#[must_use]
pub fn prefix_of(key: &BanKey) -> IpNet {
    let address = IpAddr::from(key.address());
    let length = u8::try_from(key.prefix_length()).unwrap_or(u8::MAX);
    // No ban has a longer one than addresses are.
    IpNet::new(address, length).unwrap_or_else(|_| address.into())
}
