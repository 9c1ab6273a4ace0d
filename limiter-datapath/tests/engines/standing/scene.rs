//! Policies with reserves, and sources of every standing.

use std::net::IpAddr;

use anyhow::Result;
use limiter_common::{
    address::Address,
    limit::{BUILT_IN, Cost, IdFormat, LimitId},
    policy::Features,
    standing::{Event, Kind, Record, Reserves, Settings, SourceId, Standing, Tick},
};
use limiter_native::MemoryStanding;
use limiter_policy::policy::{CompiledPolicy, Limit, Policy, Rate};
use testbed::Frame;

use crate::engine::{START, policy};

pub(super) const SECOND: u64 = 1_000_000_000;

/// No token comes back within a test.
pub(super) const HOUR: u64 = 3600 * SECOND;

pub(super) const BURST: u64 = 100;

/// The tokens of [`BURST`] that sources of each standing must leave.
pub(super) const TOKENS: [u64; Standing::COUNT] = [0, 10, 20, 30, 50];

const SETTINGS: Settings = Settings {
    lines: 1 << 10,
    first_try_lines: 1 << 10,
    ipv6_prefix: 64,
    visits: 3,
    apart_ns: 60 * SECOND,
    retry_after_ns: SECOND / 5,
    retry_within_ns: 10 * SECOND,
    remember_ns: 24 * HOUR,
    handshakes_prove: 1,
    fresh_ticks: Tick::MINUTE,
    recorded_visits: u64::MAX,
};

/// A source of each standing, in the order of [`Standing::ALL`].
pub(super) const SOURCES: [&str; Standing::COUNT] = [
    "198.51.100.1",
    "198.51.100.2",
    "2001:db8:1::3",
    "198.51.100.4",
    "2001:db8:1:5::1",
];

/// A limit of [`BURST`] tokens.
pub(super) fn limit(id: u16, id_format: IdFormat) -> Limit {
    let rate = Rate {
        burst: BURST,
        count: 1,
        period_ns: HOUR,
    };
    Limit {
        name: format!("Limit{id}"),
        id: LimitId(id),
        id_format,
        cost: Cost::Packets,
        ..Limit::of_built_in(&BUILT_IN[0], Some(rate))
    }
}

/// Compiles a policy in which the limits with these indices reserve these tokens.
pub(super) fn reserving(
    policy: &Policy,
    tokens: &[(u32, [u64; Standing::COUNT])],
) -> CompiledPolicy {
    let mut tables = CompiledPolicy::new(policy, 1).expect("the test's policy compiles");
    tables.features.standing = SETTINGS;
    tables.reserves = vec![Reserves::NONE; tables.rates.len()];
    for (limit_index, tokens) in tokens {
        tables.features.reserving |= 1 << limit_index;
        let index = *limit_index as usize;
        let interval = tables.rates[index].gcra.emission_interval;
        tables.reserves[index] = Reserves::new(tokens.map(|tokens| tokens * interval));
    }
    tables
}

/// A limit of all sources together that reserves [`TOKENS`], and a limit of each source.
pub(super) fn all_and_each() -> CompiledPolicy {
    let limits = [limit(32, IdFormat::Total), limit(33, IdFormat::IpAddress)];
    reserving(&policy(limits), &[(0, TOKENS)])
}

/// The same policy, but the limit of each source counts only strangers.
pub(super) fn of_strangers() -> CompiledPolicy {
    let mut tables = all_and_each();
    for standing in [Standing::Proven, Standing::Familiar, Standing::Fresh] {
        tables.features.of_standing[standing as usize] = !0b10;
    }
    tables
}

/// Gives a source that standing, gained long before any shortage.
pub(super) fn set_standing(
    known: &MemoryStanding,
    features: &Features,
    source: &str,
    standing: Standing,
) {
    let now = Tick::of_ns(START);
    let (kind, is_fresh, since) = match standing {
        Standing::Proven => (Kind::Proven, false, Tick(1)),
        Standing::Familiar => (Kind::Familiar, false, Tick(1)),
        Standing::Fresh => (Kind::Proven, true, now),
        Standing::Retried => (Kind::Retried, false, Tick(now.0 + Record::RETRIED)),
        Standing::Unknown => return,
    };
    let record = Record::new(kind, is_fresh, 1, now, since);
    let event = Event::Recall { record };
    assert_eq!(known.happened(features, id(source), event, START), standing);
}

/// The id of a source.
pub(super) fn id(source: &str) -> SourceId {
    SourceId::new(&SETTINGS, &Address::from(ip(source)))
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

pub(super) fn frame(source: &str) -> Result<Vec<u8>> {
    let destination = match ip(source) {
        IpAddr::V4(_) => ip("192.0.2.2"),
        IpAddr::V6(_) => ip("2001:db8:2::1"),
    };
    Frame::new(ip(source), destination).udp(1, 2, b"x")
}
