//! Two CPUs send from one source as fast as they can: exact to the packet.
//!
//! The program runs on the kernel's clock, on both CPUs at once, with an address limit, a range
//! limit and a byte limit on every packet. No limit may ever pass more than burst + elapsed /
//! emission interval, and the strictest limit passes 99.9 % of that.

use std::{net::IpAddr, thread};

use anyhow::{Context as _, Result};
use limiter_common::{
    key::BucketKey,
    limit::{BUILT_IN, BuiltIn},
    reason::Reason,
};
use limiter_datapath::kernel::{ClockSource, Instance, LogLevel, Settings, possible_cpus};
use limiter_policy::{
    config::{Buckets, Offenders, Store},
    policy::{CompiledPolicy, Limit, Policy, Rate},
};
use testbed::{Frame, monotonic_ns};

/// Twice the burst for each CPU, so that a bucket is empty for most of the run.
const TIMES: u32 = 600_000;

const SECOND: u64 = 1_000_000_000;

const STORES: [Store; 2] = [Store::Table, Store::Hash];

fn settings(store: Store) -> Result<Settings> {
    let buckets = Buckets {
        store,
        capacity: 65_536,
        ..Buckets::default()
    };
    Ok(Settings::new(buckets, Offenders::default(), LogLevel::Off)?)
}

/// A limit's name, and its tokens for each second.
type TokenRate = (&'static str, u64);

fn limit(built_in: &BuiltIn, per_second: u64) -> Limit {
    let rate = Rate {
        // One second's worth: a busy machine may stop both CPUs for a while.
        burst: per_second,
        count: per_second,
        period_ns: SECOND,
    };
    Limit::of_built_in(built_in, Some(rate))
}

/// Hammers a policy with `binding` as its strictest limit.
fn check(store: Store, limits: [TokenRate; 3], binding: &str) -> Result<()> {
    let built_in = |name: &str| {
        let found = BUILT_IN.iter().find(|limit| limit.name == name);
        found.context("a built-in limit")
    };
    let limits = limits
        .iter()
        .map(|(name, per_second)| Ok(limit(built_in(name)?, *per_second)));
    let policy = Policy::from(limits.collect::<Result<Vec<_>>>()?);
    let tables = CompiledPolicy::new(&policy, possible_cpus())?;
    let settings = settings(store)?;
    let mut instance = Instance::load(&tables, 0, settings, ClockSource::Kernel)?;
    let maps = instance.take_maps(settings)?;
    let source = "2001:db8:1::1".parse()?;
    let frame = Frame::new(source, "2001:db8:2::1".parse()?).udp(1, 2, &[0; 38])?;

    let instance = &instance;
    let hammer = || instance.hammer(&frame, TIMES);
    let start = monotonic_ns();
    let (one, other) = thread::scope(|scope| {
        let other = scope.spawn(hammer);
        let one = hammer();
        (one, other.join().expect("the other thread does not panic"))
    });
    let elapsed = u128::from(monotonic_ns() - start);
    // Exclude the kernel's set-up and tear-down of each run: tens of milliseconds without a packet.
    let busy = one?.max(other?).as_nanos();

    for limit in &policy.limits {
        let rate = limit.default.context("a limit without a default")?;
        let traffic = maps.limit_traffic(limit.id)?.passed;
        let admitted = match limit.cost {
            limiter_common::limit::Cost::Bytes => traffic.bytes,
            _ => traffic.packets,
        };
        let allowed_in = |ns: u128| {
            let added = ns * u128::from(rate.count) / u128::from(SECOND);
            u64::try_from(added).map(|added| rate.burst + added)
        };
        let most = allowed_in(elapsed)?;
        assert!(admitted <= most, "{}: {admitted} of {most}", limit.name);
        if limit.name == binding {
            assert!(
                admitted * 1000 >= allowed_in(busy)? * 999,
                "{}: {admitted} of {most} in {elapsed} ns, {busy} of them busy; \
                 contended {}, over the limit {}",
                limit.name,
                maps.reason_traffic(0, Reason::Contended)?.packets,
                maps.reason_traffic(0, Reason::OverLimit)?.packets,
            );
        }
    }
    let total: u64 = Reason::ALL
        .iter()
        .map(|reason| Ok(maps.reason_traffic(0, *reason)?.packets))
        .sum::<Result<u64>>()?;
    assert_eq!(
        total,
        u64::from(2 * TIMES),
        "every packet must have a reason"
    );

    let mut dropped = 0;
    for limit in &policy.limits {
        dropped += maps.limit_traffic(limit.id)?.dropped.packets;
    }
    let recorded = maps.offenders().read()?;
    let counts = recorded.counts;
    assert_eq!(counts.recorded + counts.skipped, dropped, "{counts:?}");
    let drops = recorded
        .offenders
        .iter()
        .map(|(_, offender)| offender.drops);
    assert_eq!(drops.sum::<u64>(), counts.recorded, "{recorded:?}");
    Ok(())
}

#[test]
fn two_cpus_stay_within_the_bound() -> Result<()> {
    let (address, range, bytes) = (
        "PacketsPerIPAddress",
        "PacketsPerIPv6Range",
        "BytesPerIPAddress",
    );
    for store in STORES {
        for (limits, binding) in [
            ([300_000, 900_000, 90_000_000], address),
            ([900_000, 300_000, 90_000_000], range),
            ([900_000, 900_000, 30_000_000], bytes),
        ] {
            let [by_address, by_range, in_bytes] = limits;
            let limits = [(address, by_address), (range, by_range), (bytes, in_bytes)];
            check(store, limits, binding)?;
        }
    }
    Ok(())
}

/// With the clock stopped, no token comes back. Two CPUs race for a range's last tokens again and
/// again. A packet that the range refuses must get back its token of the address, exactly.
#[test]
fn two_cpus_refund_what_they_lose() -> Result<()> {
    const ROUNDS: u64 = 10;
    const LAST: u64 = 40_000;
    const NOW: u64 = 1_000 * SECOND;
    let limits: Vec<_> = [(&BUILT_IN[0], 1 << 30), (&BUILT_IN[1], LAST)]
        .map(|(built_in, burst)| limit(built_in, burst))
        .into();
    let tables = CompiledPolicy::new(&Policy::from(limits), possible_cpus())?;
    for store in STORES {
        let settings = settings(store)?;
        let mut instance = Instance::load(&tables, 0, settings, ClockSource::Test)?;
        let maps = instance.take_maps(settings)?;
        instance.set_clock(NOW)?;
        let instance = &instance;
        for round in 1..=ROUNDS {
            // Each round has its own range.
            let source: IpAddr = format!("2001:db8:{round}::1").parse()?;
            let frame = Frame::new(source, "2001:db8:ffff::1".parse()?).udp(1, 2, b"x")?;
            let keys = [(0, 128), (1, 48)].map(|(limit_index, length)| {
                let limit = BUILT_IN[limit_index].id;
                BucketKey::of_source(limit, source.into(), length)
            });
            // Each CPU sends more than half of the range's tokens, so they run out while both still
            // run.
            let hammer = || instance.hammer(&frame, 60_000);
            thread::scope(|scope| {
                let other = scope.spawn(hammer);
                hammer()?;
                other.join().expect("the other thread does not panic")
            })?;
            for (key, parameters) in keys.iter().zip(&tables.rates) {
                let gcra = &parameters.gcra;
                let tat = maps.bucket(key)?.context("a bucket")?.state;
                let debt = tat - gcra.ticks(NOW);
                assert_eq!(debt / gcra.emission_interval, LAST, "tokens of {key:?}");
            }
            let passed = maps.reason_traffic(0, Reason::WithinLimits)?.packets;
            assert_eq!(passed, round * LAST);
            assert_eq!(maps.reason_traffic(0, Reason::Contended)?.packets, 0);
        }
    }
    Ok(())
}
