//! The debts of buckets, captured from one program's maps and restored into another's.

use std::net::Ipv4Addr;

use anyhow::Result;
use limiter_common::{key::BucketKey, limit::BUILT_IN, strategy::Parameters};
use limiter_datapath::{
    kernel::{ClockSource, Instance, LogLevel, RestoreCounts, Settings, SharedMaps, possible_cpus},
    state::Debts,
};
use limiter_policy::{
    config::{Buckets, Offenders, Store},
    policy::{CompiledPolicy, Limit, Policy, Rate},
};
use testbed::Frame;

const SECOND: u64 = 1_000_000_000;

/// The kernel's clock before and after a reboot.
const BEFORE: u64 = 1_000_000 * SECOND;
const AFTER: u64 = 10 * SECOND;

/// A limit of a token an hour, and a limit of a token in 3⅓ nanoseconds, which needs ticks.
fn policy() -> Result<CompiledPolicy> {
    let rates = [
        (0, (200, 1, 3_600 * SECOND)),
        (2, (1 << 40, 300_000_000, SECOND)),
    ];
    let limits = rates.map(|(index, (burst, count, period_ns))| {
        let rate = Rate {
            burst,
            count,
            period_ns,
        };
        Limit::of_built_in(&BUILT_IN[index], Some(rate))
    });
    Ok(CompiledPolicy::new(
        &Policy::from(Vec::from(limits)),
        possible_cpus(),
    )?)
}

/// A program with its own buckets.
struct Program {
    policy: CompiledPolicy,
    instance: Instance,
    maps: SharedMaps,
}

impl Program {
    fn new(store: Store, capacity: u32, debts: Option<&Debts>) -> Result<Self> {
        let buckets = Buckets {
            store,
            capacity,
            ..Buckets::default()
        };
        let mut settings = Settings::new(buckets, Offenders::OFF, LogLevel::Off)?;
        if let Some(debts) = debts {
            settings = settings.resuming(debts);
        }
        let policy = policy()?;
        let mut instance = Instance::load(&policy, 0, settings, ClockSource::Test)?;
        let maps = instance.take_maps(settings)?;
        Ok(Self {
            policy,
            instance,
            maps,
        })
    }

    /// Sends packets from each source, as many as its number.
    fn spend(&mut self, sources: u32) -> Result<()> {
        self.instance.set_clock(BEFORE)?;
        for source in 1..=sources {
            let frame = Frame::new(address(source).into(), "10.255.0.1".parse()?);
            self.instance.hammer(&frame.udp(1, 2, b"x")?, source)?;
        }
        Ok(())
    }

    fn capture(&self) -> Result<Debts> {
        Ok(self.maps.buckets().capture(&self.policy.units, BEFORE)?)
    }

    /// Restores debts, `passed_ns` after they were captured.
    fn restore(&self, debts: &Debts, passed_ns: u64) -> Result<RestoreCounts> {
        let buckets = self.maps.buckets();
        Ok(buckets.restore(debts, &self.policy.units, AFTER, passed_ns)?)
    }

    /// The debts of a source's buckets at a time, in ticks of their limits.
    fn owed(&self, source: u32, now_ns: u64) -> Result<[u64; 2]> {
        let mut owed = [0; 2];
        for (limit_index, owed) in owed.iter_mut().enumerate() {
            let parameters = self.parameters(limit_index);
            let limit = BUILT_IN[2 * limit_index].id;
            let key =
                BucketKey::of_source(limit, std::net::IpAddr::from(address(source)).into(), 32);
            let bucket = self.maps.bucket(&key)?;
            let state = bucket.map_or(0, |bucket| bucket.state);
            *owed = state.saturating_sub(parameters.gcra.ticks(now_ns));
        }
        Ok(owed)
    }

    fn parameters(&self, limit_index: usize) -> &Parameters {
        &self.policy.rates[limit_index]
    }
}

fn address(source: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x0a00_0000 | source)
}

const SOURCES: u32 = 40;

/// Two for each source.
const BUCKETS: u64 = 2 * SOURCES as u64;

#[test]
fn debts_are_the_same_but_for_the_time_that_has_passed() -> Result<()> {
    const HOUR: u64 = 3_600 * SECOND;
    for [from, to] in [
        [Store::Table, Store::Table],
        [Store::Hash, Store::Hash],
        [Store::Hash, Store::Table],
    ] {
        let mut before = Program::new(from, 65_536, None)?;
        before.spend(SOURCES)?;
        let debts = before.capture()?;
        assert_eq!(debts.count(), BUCKETS);
        for (passed, hours, full) in [(0, 0, 0), (1, 0, 0), (3 * HOUR, 3, SOURCES + 3)] {
            let after = Program::new(to, 65_536, Some(&debts))?;
            let restored = after.restore(&debts, passed)?;
            let expected = RestoreCounts {
                restored: BUCKETS - u64::from(full),
                full: full.into(),
                lost: 0,
            };
            assert_eq!(restored, expected, "{from:?} to {to:?} after {passed} ns");
            for source in 1..=SOURCES {
                let [by_packets, by_bytes] = before.owed(source, BEFORE)?;
                let passed = [passed, after.parameters(1).gcra.ticks(passed)];
                let expected = [
                    by_packets.saturating_sub(passed[0]),
                    by_bytes.saturating_sub(passed[1]),
                ];
                assert_eq!(after.owed(source, AFTER)?, expected, "{source}");
                // The debt of packets is in whole hours.
                let tokens = u64::from(source).saturating_sub(hours);
                assert_eq!(expected[0].div_ceil(HOUR), tokens, "{source}");
            }
        }
    }
    Ok(())
}

/// In a smaller table the smallest debts are forgotten.
#[test]
fn a_smaller_table() -> Result<()> {
    let mut before = Program::new(Store::Table, 65_536, None)?;
    before.spend(SOURCES)?;
    let debts = before.capture()?;
    for capacity in [128, 32] {
        let after = Program::new(Store::Table, capacity, Some(&debts))?;
        let restored = after.restore(&debts, 0)?;
        assert_eq!(restored.restored + restored.lost, BUCKETS);
        assert_eq!(restored.full, 0);
        let mut kept = 0;
        for source in 1..=SOURCES {
            let owed = before.owed(source, BEFORE)?;
            for (found, owed) in after.owed(source, AFTER)?.iter().zip(owed) {
                assert!(*found == owed || *found == 0, "{found} and not {owed}");
                kept += u64::from(*found == owed);
            }
        }
        assert_eq!(kept, restored.restored);
        assert_eq!(after.maps.bucket_count()? as u64, kept);
        if capacity == 32 {
            // More than fit; the hash leaves few lines empty.
            assert!((16..=32).contains(&kept), "{kept}");
        }
    }
    Ok(())
}

/// In a larger table each bucket is in every line where a look-up may search for it.
#[test]
fn a_larger_table() -> Result<()> {
    let mut before = Program::new(Store::Table, 4_096, None)?;
    before.spend(SOURCES)?;
    let debts = before.capture()?;
    let captured = debts.count();
    for times in [2, 16] {
        let after = Program::new(Store::Table, 4_096 * times, Some(&debts))?;
        let restored = after.restore(&debts, 0)?;
        assert_eq!(restored.restored, captured, "{restored:?}");
        let copies = captured * u64::from(times);
        assert_eq!(after.maps.bucket_count()? as u64, copies);
        for source in 1..=SOURCES {
            assert_eq!(after.owed(source, AFTER)?, before.owed(source, BEFORE)?);
        }
    }
    let after = Program::new(Store::Table, 4_096 * 32, Some(&debts))?;
    assert_eq!(after.restore(&debts, 0)?, lost(captured));
    assert_eq!(after.maps.bucket_count()?, 0);
    Ok(())
}

/// A table identifies its buckets by a hash of their keys with a secret.
#[test]
fn debts_of_nobody_knows_whom() -> Result<()> {
    let mut before = Program::new(Store::Table, 65_536, None)?;
    before.spend(10)?;
    let debts = before.capture()?;
    for (store, known) in [(Store::Hash, Some(&debts)), (Store::Table, None)] {
        let after = Program::new(store, 65_536, known)?;
        assert_eq!(after.restore(&debts, 0)?, lost(20));
        assert_eq!(after.maps.bucket_count()?, 0);
    }
    Ok(())
}

const fn lost(lost: u64) -> RestoreCounts {
    RestoreCounts {
        restored: 0,
        full: 0,
        lost,
    }
}

/// Restored debts add to existing ones.
#[test]
fn debts_add_up() -> Result<()> {
    for store in [Store::Table, Store::Hash] {
        let mut program = Program::new(store, 65_536, None)?;
        program.spend(10)?;
        let debts = program.capture()?;
        let owed = program.owed(10, BEFORE)?;
        program
            .maps
            .buckets()
            .restore(&debts, &program.policy.units, BEFORE, 0)?;
        assert_eq!(program.owed(10, BEFORE)?, owed.map(|ticks| 2 * ticks));
    }
    Ok(())
}
