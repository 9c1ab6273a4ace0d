//! What sources of each standing get of limits that reserve.

mod retries;
mod threads;

use std::net::IpAddr;

use anyhow::Result;
use limiter_common::{
    address::Address,
    bucket::{BucketStore, Search, Swap},
    decide::{Outline, Verdict},
    limit::{BUILT_IN, Cost, IdFormat, LimitId},
    owner::BucketKey,
    policy::{Class, DEFAULT_CLASS_V4, Shape},
    reason::Reason::{
        self, BlockedList, LargerThanBurst, OverLimit, Reserved, Unlimited, WithinLimits,
    },
    standing::{Event, Kind, Record, Reserves, Settings, SourceId, Standing, Tick},
};
use limiter_datapath::native::{
    BucketLocation, BytesFrame, MemoryBuckets, MemoryOffenders, MemoryReputation, MemoryStanding,
    decide_once,
};
use limiter_policy::policy::{CompiledPolicy, Limit, Mode, Policy, Rate};
use testbed::Frame;

use crate::engine::{START, policy};

const SECOND: u64 = 1_000_000_000;

/// No token comes back within a test.
const HOUR: u64 = 3600 * SECOND;

const BURST: u64 = 100;

/// What sources of each standing must leave of [`BURST`], in tokens.
const TOKENS: [u64; Standing::COUNT] = [0, 10, 20, 30, 50];

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
    unused: 0,
};

/// A limit of [`BURST`] tokens.
fn limit(id: u16, id_format: IdFormat) -> Limit {
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

/// Compiles a policy in which the limits with these indices reserve those tokens.
fn reserving(policy: &Policy, tokens: &[(u32, [u64; Standing::COUNT])]) -> CompiledPolicy {
    let mut tables = CompiledPolicy::new(policy, 1).expect("the test's policy compiles");
    tables.shape.standing = SETTINGS;
    tables.reserves = vec![Reserves::NONE; tables.rates.len()];
    for (limit_index, tokens) in tokens {
        tables.shape.reserving |= 1 << limit_index;
        let place = *limit_index as usize;
        let interval = tables.rates[place].gcra.emission_interval;
        tables.reserves[place] = Reserves::new(tokens.map(|tokens| tokens * interval));
    }
    tables
}

/// A limit of all sources together that reserves [`TOKENS`], and one of each source.
fn all_and_each() -> CompiledPolicy {
    let limits = [limit(32, IdFormat::Total), limit(33, IdFormat::IpAddress)];
    reserving(&policy(limits), &[(0, TOKENS)])
}

/// Counts how often a bucket is looked for.
#[derive(Default)]
struct Counting {
    buckets: MemoryBuckets,
    finds: std::cell::Cell<u32>,
}

impl BucketStore for Counting {
    type Location = BucketLocation;

    fn find(
        &self,
        key: &BucketKey,
        unit: u32,
        search: &mut Search,
        location: &mut BucketLocation,
    ) -> u64 {
        self.finds.update(|count| count + 1);
        self.buckets.find(key, unit, search, location)
    }

    fn find_part(
        &self,
        bucket: &BucketLocation,
        number: u64,
        unit: u32,
        location: &mut BucketLocation,
    ) -> u64 {
        self.buckets.find_part(bucket, number, unit, location)
    }

    fn read(&self, location: &mut BucketLocation) -> u64 {
        self.buckets.read(location)
    }

    fn swap(&self, location: &BucketLocation, now_ns: u64, seen: u64, wanted: u64) -> Swap {
        self.buckets.swap(location, now_ns, seen, wanted)
    }
}

impl Outline for Counting {}

/// The native engine over one policy.
struct Host {
    tables: CompiledPolicy,
    buckets: Counting,
    offenders: MemoryOffenders,
    reputation: MemoryReputation,
}

impl Host {
    fn new(tables: CompiledPolicy) -> Self {
        let reputation = MemoryReputation {
            standing: MemoryStanding::new(&tables.shape.standing),
            ..MemoryReputation::default()
        };
        Self {
            tables,
            buckets: Counting::default(),
            offenders: MemoryOffenders::default(),
            reputation,
        }
    }

    fn standing(&self) -> &MemoryStanding {
        &self.reputation.standing
    }

    /// Gives a source that standing; returns the source.
    fn know(&self, source: &'static str, standing: Standing) -> &'static str {
        know(self.standing(), &self.tables.shape, source, standing);
        source
    }

    /// Decides on a packet of a source, `offset_ns` after [`START`].
    fn verdict(&self, offset_ns: u64, source: &str) -> Verdict {
        decide_once(
            &BytesFrame(&frame(source).expect("a source of IPv4 or IPv6")),
            START + offset_ns,
            &self.tables,
            &self.buckets,
            &self.offenders,
            &self.reputation,
        )
    }

    /// Sends packets of a source until one is dropped; returns how many passed, and the last
    /// verdict. The source must have that standing.
    fn exhaust(&self, source: &str, standing: Standing) -> (u64, Verdict) {
        for passed in 0..=BURST {
            let verdict = self.verdict(0, source);
            assert_eq!(
                verdict.standing(),
                Some(standing),
                "packet {passed} of {source}"
            );
            if verdict.reason != WithinLimits {
                return (passed, verdict);
            }
        }
        panic!("{source} got more than the burst");
    }

    /// Returns the states of all buckets.
    fn states(&self) -> std::collections::HashMap<BucketKey, u64> {
        self.buckets.buckets.clone().into_states()
    }
}

/// Gives a source that standing, gained long before any shortage.
fn know(known: &MemoryStanding, shape: &Shape, source: &str, standing: Standing) {
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
    assert_eq!(known.happened(shape, id(source), event, START), standing);
}

/// Returns what names a source.
fn id(source: &str) -> SourceId {
    SourceId::new(&SETTINGS, &Address::from(ip(source)))
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn frame(source: &str) -> Result<Vec<u8>> {
    let destination = match ip(source) {
        IpAddr::V4(_) => ip("192.0.2.2"),
        IpAddr::V6(_) => ip("2001:db8:2::1"),
    };
    Frame::new(ip(source), destination).udp(1, 2, b"x")
}

/// The sources of each standing, in the order of [`Standing::ALL`].
const SOURCES: [&str; Standing::COUNT] = [
    "198.51.100.1",
    "198.51.100.2",
    "2001:db8:1::3",
    "198.51.100.4",
    "2001:db8:1:5::1",
];

#[test]
fn each_standing_leaves_its_reserve() {
    for ((standing, source), reserve) in Standing::ALL.into_iter().zip(SOURCES).zip(TOKENS) {
        let host = Host::new(all_and_each());
        let source = host.know(source, standing);
        let (passed, last) = host.exhaust(source, standing);
        assert_eq!(passed, BURST - reserve, "{standing:?}");
        let reason = if reserve == 0 { OverLimit } else { Reserved };
        assert_eq!(
            (last.reason, last.denied_by()),
            (reason, Some(0)),
            "{standing:?}"
        );
        assert_eq!(last.matched, 0b11);
    }
}

#[test]
fn what_the_lower_leave_is_for_the_higher() {
    let host = Host::new(all_and_each());
    let mut left = BURST;
    let from_below = Standing::ALL.into_iter().zip(SOURCES).zip(TOKENS).rev();
    for ((standing, source), reserve) in from_below {
        let (passed, _) = host.exhaust(host.know(source, standing), standing);
        assert_eq!(passed, left - reserve, "{standing:?}");
        left = reserve;
    }
    // Now nobody passes, whatever the reserve: that is no longer its fault.
    for (standing, source) in Standing::ALL.into_iter().zip(SOURCES) {
        let (passed, last) = host.exhaust(source, standing);
        assert_eq!(
            (passed, last.reason, last.denied_by()),
            (0, OverLimit, Some(0))
        );
    }
}

#[test]
fn a_refusal_for_a_reserve_reads_one_bucket_and_changes_none() {
    let host = Host::new(all_and_each());
    host.exhaust("198.51.100.9", Standing::Unknown);
    let before = host.states();
    for source in ["198.51.100.8", "198.51.100.9"] {
        let finds = host.buckets.finds.get();
        assert_eq!(host.verdict(0, source).reason, Reserved);
        assert_eq!(host.buckets.finds.get(), finds + 1);
    }
    assert_eq!(host.states(), before);
    // Nor has a source that gives way sent too much.
    assert_eq!(host.offenders.list().len(), 0);
}

/// The stage that charges does not ask again whom the stage before has asked.
#[test]
fn a_packet_that_passes_looks_for_each_bucket_once() {
    let host = Host::new(all_and_each());
    for standing in [Standing::Proven, Standing::Unknown] {
        let source = host.know(SOURCES[standing as usize], standing);
        let finds = host.buckets.finds.get();
        assert_eq!(host.verdict(0, source).reason, WithinLimits);
        assert_eq!(host.buckets.finds.get(), finds + 2, "{standing:?}");
    }
}

/// What is charged is what the bucket had without reserves.
#[test]
fn a_packet_that_leaves_the_reserve_is_charged_as_any_other() {
    let host = Host::new(all_and_each());
    let plain = Host::new(CompiledPolicy {
        reserves: Vec::new(),
        ..reserving(
            &policy([limit(32, IdFormat::Total), limit(33, IdFormat::IpAddress)]),
            &[],
        )
    });
    for (standing, source) in Standing::ALL.into_iter().zip(SOURCES) {
        host.know(source, standing);
        for _ in 0..5 {
            assert_eq!(host.verdict(0, source).reason, WithinLimits);
            assert_eq!(plain.verdict(0, source).reason, WithinLimits);
        }
    }
    assert_eq!(host.states(), plain.states());
}

/// A source that is refused where nothing is reserved has sent too much, as without reserves.
#[test]
fn an_empty_bucket_makes_offenders_and_a_shortage() {
    let host = Host::new(all_and_each());
    let source = host.know(SOURCES[0], Standing::Proven);
    let now = Tick::of_ns(START);
    assert!(!host.standing().shortage().holds(now));
    assert_eq!(host.exhaust(source, Standing::Proven).1.reason, OverLimit);
    assert!(host.standing().shortage().holds(now));
    let drops = |host: &Host| -> u64 {
        let offenders = host.offenders.list();
        offenders.iter().map(|(_, offender)| offender.drops).sum()
    };
    assert_eq!(drops(&host), 1);
    assert_eq!(host.verdict(0, SOURCES[4]).reason, OverLimit);
    assert_eq!(drops(&host), 2);
}

/// The limit of each source does not reserve: that one is over it is no shortage.
#[test]
fn a_limit_that_reserves_nothing_is_never_short() {
    let host = Host::new(reserving(
        &policy([limit(32, IdFormat::IpAddress), limit(33, IdFormat::Total)]),
        &[(1, [0; Standing::COUNT])],
    ));
    let (passed, last) = host.exhaust(SOURCES[4], Standing::Unknown);
    assert_eq!(
        (passed, last.reason, last.denied_by()),
        (BURST, OverLimit, Some(0))
    );
    assert!(!host.standing().shortage().holds(Tick::of_ns(START)));
}

#[test]
fn a_list_vouches_for_sources_without_a_look_up() {
    let mut tables = all_and_each();
    tables.classes[DEFAULT_CLASS_V4 as usize].listing |= Class::PROVEN;
    let host = Host::new(tables);
    let (passed, last) = host.exhaust("198.51.100.77", Standing::Proven);
    assert_eq!((passed, last.reason), (BURST, OverLimit));
    assert_eq!(host.standing().records().count(), 0);
    // It says nothing of the other family.
    let verdict = host.verdict(0, SOURCES[4]);
    assert_eq!(verdict.standing(), Some(Standing::Unknown));
}

/// What else lists say stays true.
#[test]
fn a_proven_source_may_be_excluded_or_blocked() {
    for (listing, reason) in [
        (Class::EXCLUDED, Reason::Excluded),
        (Class::BLOCKED, BlockedList),
    ] {
        let mut tables = all_and_each();
        tables.classes[DEFAULT_CLASS_V4 as usize].listing = Class::PROVEN | listing;
        let verdict = Host::new(tables).verdict(0, "198.51.100.77");
        assert_eq!((verdict.reason, verdict.standing()), (reason, None));
    }
}

/// The sets of limits by standing: the second limit counts only strangers.
fn of_strangers() -> CompiledPolicy {
    let mut tables = all_and_each();
    for standing in [Standing::Proven, Standing::Familiar, Standing::Fresh] {
        tables.shape.of_standing[standing as usize] = !0b10;
    }
    tables
}

#[test]
fn a_limit_may_count_only_sources_of_some_standing() {
    let host = Host::new(of_strangers());
    for (standing, source) in Standing::ALL.into_iter().zip(SOURCES) {
        let verdict = host.verdict(0, host.know(source, standing));
        let matched = match standing {
            Standing::Retried | Standing::Unknown => 0b11,
            _ => 0b01,
        };
        assert_eq!(
            (verdict.reason, verdict.matched),
            (WithinLimits, matched),
            "{standing:?}"
        );
    }
}

#[test]
fn who_no_limit_counts_is_unlimited() {
    let mut tables = reserving(&policy([limit(32, IdFormat::IpAddress)]), &[]);
    tables.shape.of_standing[Standing::Proven as usize] = 0;
    let host = Host::new(tables);
    let source = host.know(SOURCES[0], Standing::Proven);
    let verdict = host.verdict(0, source);
    assert_eq!((verdict.reason, verdict.matched), (Unlimited, 0));
    assert_eq!(verdict.standing(), Some(Standing::Proven));
    let verdict = host.verdict(0, SOURCES[4]);
    assert_eq!((verdict.reason, verdict.matched), (WithinLimits, 1));
}

/// A limit that does not count a source does not block it either.
#[test]
fn a_limit_blocks_only_whom_it_counts() {
    let mut tables = of_strangers();
    let listing = u32::try_from(tables.masks.len()).expect("a small table");
    tables.masks.push(0b10);
    tables.classes[DEFAULT_CLASS_V4 as usize].listing = listing;
    let host = Host::new(tables);
    let known = host.verdict(0, host.know(SOURCES[0], Standing::Proven));
    assert_eq!(known.reason, WithinLimits);
    let stranger = host.verdict(0, "198.51.100.200");
    assert_eq!(
        (stranger.reason, stranger.denied_by()),
        (BlockedList, Some(1))
    );
    assert_eq!(stranger.standing(), Some(Standing::Unknown));
}

/// Of two limits that reserve, the one that refuses outright says why.
#[test]
fn what_refuses_without_a_reserve_comes_first() {
    let limits = || {
        policy([
            limit(32, IdFormat::Total),
            limit(33, IdFormat::IpAddress),
            limit(34, IdFormat::Total),
        ])
    };
    let unknown = |tokens| [0, 0, 0, 0, tokens];
    for (tokens, passed, reason, denied_by) in [
        // The second is as full as the first, and leaves less.
        ([50, 40, 0], 50, Reserved, 0),
        ([40, 50, 0], 50, Reserved, 1),
        ([50, 50, 0], 50, Reserved, 0),
    ] {
        let reserves: Vec<_> = (0..).zip(tokens.map(unknown)).collect();
        let host = Host::new(reserving(&limits(), &reserves));
        let (got, last) = host.exhaust(SOURCES[4], Standing::Unknown);
        assert_eq!(
            (got, last.reason, last.denied_by()),
            (passed, reason, Some(denied_by)),
            "{tokens:?}"
        );
    }
    // A known source empties its own bucket and half of the shared ones; unknown ones are then
    // refused for the reserve, but in the second limit this one has nothing at all.
    let host = Host::new(reserving(&limits(), &[(0, unknown(50)), (1, unknown(1))]));
    let source = host.know(SOURCES[0], Standing::Proven);
    assert_eq!(host.exhaust(source, Standing::Proven).0, BURST);
    let shape = &host.tables.shape;
    host.standing()
        .happened(shape, id(source), Event::Forget, START);
    let verdict = host.verdict(0, source);
    assert_eq!((verdict.reason, verdict.denied_by()), (OverLimit, Some(0)));
}

#[test]
fn a_limit_that_observes_says_whom_it_would_refuse() {
    let tables = reserving(
        &policy([
            Limit {
                mode: Mode::Observe,
                ..limit(32, IdFormat::Total)
            },
            limit(33, IdFormat::IpAddress),
        ]),
        &[(0, TOKENS)],
    );
    let host = Host::new(tables);
    for count in 1..=BURST {
        let verdict = host.verdict(0, SOURCES[4]);
        let would_drop = u64::from(count > BURST - TOKENS[4]);
        assert_eq!(
            (verdict.reason, verdict.would_drop),
            (WithinLimits, would_drop),
            "{count}"
        );
    }
    // It is charged only for what it would have let pass.
    let source = host.know(SOURCES[0], Standing::Proven);
    for count in 1..=BURST {
        let verdict = host.verdict(0, source);
        let would_drop = u64::from(count > TOKENS[4]);
        assert_eq!(
            (verdict.reason, verdict.would_drop),
            (WithinLimits, would_drop),
            "{count}"
        );
    }
}

/// What never fits is no shortage, whoever sends it.
#[test]
fn a_packet_larger_than_the_burst_is_called_so() {
    let tables = reserving(
        &policy([Limit {
            cost: Cost::Bytes,
            default: Some(Rate {
                burst: 20,
                count: 1,
                period_ns: HOUR,
            }),
            ..limit(32, IdFormat::Total)
        }]),
        &[(0, [0, 1, 2, 3, 5])],
    );
    let host = Host::new(tables);
    for (standing, source) in Standing::ALL.into_iter().zip(SOURCES) {
        let verdict = host.verdict(0, host.know(source, standing));
        assert_eq!(
            (verdict.reason, verdict.denied_by()),
            (LargerThanBurst, Some(0))
        );
    }
    assert!(!host.standing().shortage().holds(Tick::of_ns(START)));
}

/// A policy without standing neither looks anybody up nor says what he is.
#[test]
fn a_policy_without_standing_asks_nobody() {
    let tables =
        CompiledPolicy::new(&policy([limit(32, IdFormat::Total)]), 1).expect("it compiles");
    let verdict = Host::new(tables).verdict(0, SOURCES[4]);
    assert_eq!((verdict.reason, verdict.standing()), (WithinLimits, None));
}
