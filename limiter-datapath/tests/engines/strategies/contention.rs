//! Two CPUs charge one bucket of each strategy as fast as they can: exact to the packet.

use std::thread;

use anyhow::Result;
use limiter_common::{reason::Reason, strategy::Strategy};
use limiter_datapath::kernel::{
    ClockSource, Instance, LogLevel, Settings, SharedMaps, possible_cpus,
};
use limiter_policy::{
    config::{Buckets, Offenders, Store},
    policy::{CompiledPolicy, Policy},
};
use testbed::monotonic_ns;

use super::{SECOND, STORES, frame, limit};
use crate::engine::START;

/// The length of a period, in seconds.
const SECONDS: u64 = 100;

/// The packets of each CPU, more than any bucket admits: it is empty while both still run.
const TIMES: u32 = 60_000;

/// With so large a count, both CPUs race for most of a run.
const MANY: u64 = 40_000;

/// The counts for each strategy.
const COUNTS: [(Strategy, u64); 7] = [
    (Strategy::Gcra, MANY),
    (Strategy::FixedWindow, MANY),
    (Strategy::FixedWindow, 1),
    (Strategy::SlidingWindowCounter, MANY),
    (Strategy::SlidingWindowCounter, 1),
    (Strategy::MovingWindow, 128),
    (Strategy::MovingWindow, 3),
];

fn settings(store: Store) -> Result<Settings> {
    let buckets = Buckets {
        store,
        capacity: 65_536,
        ..Buckets::default()
    };
    Ok(Settings::new(buckets, Offenders::default(), LogLevel::Off)?)
}

/// Two threads send `times` packets each from one source.
fn hammer(instance: &Instance, times: u32) -> Result<()> {
    let frame = frame(1)?;
    let hammer = || instance.hammer(&frame, times);
    thread::scope(|scope| {
        let other = scope.spawn(hammer);
        hammer()?;
        other.join().expect("the other thread does not panic")?;
        Ok(())
    })
}

fn counted(maps: &SharedMaps, reason: Reason) -> Result<u64> {
    Ok(maps.reason_traffic(0, reason)?.packets)
}

/// While the clock stands still, exactly the count passes; as many again after a period, and again
/// after two.
#[test]
fn exactly_as_many_pass_as_the_limit_says() -> Result<()> {
    for store in STORES {
        for (strategy, count) in COUNTS {
            let policy = Policy::from(vec![limit(strategy, count, SECONDS)]);
            let settings = settings(store)?;
            let tables = CompiledPolicy::new(&policy, possible_cpus())?;
            let mut instance = Instance::load(&tables, 0, settings, ClockSource::Test)?;
            let maps = instance.take_maps(settings)?;
            let mut passed = 0;
            // In a sliding window counter, a bucket counts for two periods, and the ticks of its
            // time are longer than a nanosecond.
            let period = match strategy {
                Strategy::SlidingWindowCounter => 2 * SECONDS * SECOND + SECOND,
                _ => SECONDS * SECOND + SECOND,
            };
            for round in 0..3 {
                instance.set_clock(START + round * period)?;
                hammer(&instance, TIMES)?;
                passed += count;
                let within = counted(&maps, Reason::WithinLimits)?;
                let contended = counted(&maps, Reason::Contended)?;
                println!("{store:?} {strategy:?} {count}: {contended} contended");
                assert_eq!(within, passed, "{store:?} {strategy:?} {count}");
                let over = counted(&maps, Reason::OverLimit)?;
                let all = 2 * u64::from(TIMES) * (round + 1);
                assert_eq!(within + over + contended, all, "every packet has a reason");
            }
        }
    }
    Ok(())
}

/// By the kernel's own clock, in periods so short that windows end and begin, and logs wrap, all
/// the time.
#[test]
fn no_period_admits_too_many() -> Result<()> {
    const PERIOD: u64 = 200_000;
    const TIMES: u32 = 300_000;
    for store in STORES {
        for (strategy, count) in [
            (Strategy::FixedWindow, 500),
            (Strategy::SlidingWindowCounter, 500),
            (Strategy::MovingWindow, 128),
            (Strategy::MovingWindow, 3),
        ] {
            let mut limit = limit(strategy, count, 1);
            limit.default.as_mut().expect("it has one").period_ns = PERIOD;
            let settings = settings(store)?;
            let tables = CompiledPolicy::new(&Policy::from(vec![limit]), possible_cpus())?;
            let mut instance = Instance::load(&tables, 0, settings, ClockSource::Kernel)?;
            let maps = instance.take_maps(settings)?;
            let start = monotonic_ns();
            hammer(&instance, TIMES)?;
            let periods = (monotonic_ns() - start).div_ceil(PERIOD);
            let passed = counted(&maps, Reason::WithinLimits)?;
            let contended = counted(&maps, Reason::Contended)?;
            println!(
                "{store:?} {strategy:?} {count}: {passed} passed in {periods} periods, \
                 {contended} contended"
            );
            // A window may have begun just before the last period ended.
            let most = (periods + 1) * count;
            assert!(passed <= most, "{strategy:?} {count}: {passed} of {most}");
            assert!(
                passed >= count && contended < passed,
                "{strategy:?} {count}: {passed}"
            );
        }
    }
    Ok(())
}
