//! What a policy wants of a frame, found without its tables.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use limiter_common::{
    address::{Address, Family},
    bucket::BucketKey,
    gcra::Gcra,
    limit::Cost,
    packet::{self, Facts},
};
use limiter_userspace::{
    native::BytesFrame,
    policy::{Limit, Policy},
};

/// What one limit wants of a packet.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) slot: u32,
    pub(super) key: BucketKey,
    pub(super) cost: u64,
    pub(super) gcra: Gcra,
}

impl Wanted {
    pub(super) const fn is_larger_than_burst(&self) -> bool {
        self.cost > self.gcra.burst
    }
}

/// Of every limit that matches, in the order of the slots; of none, if it is no packet.
pub(super) fn wanted(policy: &Policy, frame: &[u8]) -> Vec<Wanted> {
    let mut facts = Facts::NONE;
    if packet::parse(&BytesFrame(frame), &mut facts).is_err() {
        return Vec::new();
    }
    (0..)
        .zip(&policy.limits)
        .filter_map(|(slot, limit)| of_limit(slot, limit, &facts))
        .collect()
}

fn of_limit(slot: u32, limit: &Limit, facts: &Facts) -> Option<Wanted> {
    let prefix_length = match facts.source.family {
        Family::V4 => limit.id_format.ipv4_prefix_length(),
        Family::V6 => limit.id_format.ipv6_prefix_length(),
    }?;
    let cost = match limit.cost {
        Cost::Packets => 1,
        Cost::Bytes => facts.length,
        Cost::NewConnections => facts.opens_connection.then_some(1)?,
    };
    let rate = match limit.override_of(ip_address(facts.source)) {
        Some(other) => other.rate,
        None => limit.default?,
    };
    Some(Wanted {
        slot,
        key: BucketKey::new(limit.id, facts.source, prefix_length),
        cost,
        gcra: Gcra::new(rate.burst, rate.count, rate.period_ns)?,
    })
}

/// An address as the standard library has it.
fn ip_address(address: Address) -> IpAddr {
    let bits = u128::from(address.high) << 64 | u128::from(address.low);
    let [a, b, c, d, ..] = bits.to_be_bytes();
    match address.family {
        Family::V4 => Ipv4Addr::new(a, b, c, d).into(),
        Family::V6 => Ipv6Addr::from(bits).into(),
    }
}
