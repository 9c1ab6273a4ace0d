//! What is made of what sources do, besides their budgets: decisions without a clock or a map.

pub mod automatic;
pub mod pressure;

use std::net::IpAddr;

use ipnet::IpNet;
use limiter_common::ban::BanKey;

/// The prefix that a ban is for.
#[must_use]
pub fn prefix_of(key: &BanKey) -> IpNet {
    let address = IpAddr::from(key.address());
    let length = u8::try_from(key.prefix_length()).unwrap_or(u8::MAX);
    // No ban has a longer one than addresses are.
    IpNet::new(address, length).unwrap_or_else(|_| address.into())
}
