//! Good clients: they ask in an open loop, from their own addresses, and retry without a response.

mod connections;
mod engine;
mod questions;
mod schedule;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bench_common::Group;

use self::connections::{Attempt, Connections};
pub(crate) use self::questions::{TRIES, Tally};
pub(super) use self::{
    engine::{ask, shake_hands},
    questions::Questions,
    schedule::{PlannedQuestion, visits, working_day},
};

/// Returns the address of a member of a group.
pub(super) fn address(group: Group, member: u32, is_v6: bool) -> IpAddr {
    if is_v6 {
        Ipv6Addr::from(u128::from(group.v6(member)) << 64 | 1).into()
    } else {
        Ipv4Addr::from(group.v4(member)).into()
    }
}
