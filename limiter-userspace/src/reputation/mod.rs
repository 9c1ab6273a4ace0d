//! What is made of what sources do, besides their budgets: decisions without a clock or a map.

pub mod automatic;
pub mod lists;
pub mod pressure;

use std::net::IpAddr;

use ipnet::IpNet;
use limiter_common::ban::{Ban, BanKey, FOREVER};

/// The longest that an ended ban is known for, in nanoseconds: a day.
const LONGEST_MEMORY: u64 = 24 * 3_600_000_000_000;

/// Whether a ban is not known any more at `now_ns`: it has ended for as long as it lasted, or for a
/// day. Until then it counts when its prefix is banned again.
#[must_use]
pub const fn is_forgotten(ban: &Ban, now_ns: u64) -> bool {
    // One from before a reboot began before the clock.
    let lasted_ns = ban.until_ns.wrapping_sub(ban.since_ns);
    let known_ns = if lasted_ns < LONGEST_MEMORY {
        lasted_ns
    } else {
        LONGEST_MEMORY
    };
    ban.until_ns != FOREVER && now_ns >= ban.until_ns.saturating_add(known_ns)
}

/// The prefix that a ban is for.
#[must_use]
pub fn prefix_of(key: &BanKey) -> IpNet {
    let address = IpAddr::from(key.address());
    let length = u8::try_from(key.prefix_length()).unwrap_or(u8::MAX);
    // No ban has a longer one than addresses are.
    IpNet::new(address, length).unwrap_or_else(|_| address.into())
}
