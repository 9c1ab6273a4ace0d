//! Userspace gives tokens back while the kernel takes them.

use std::{net::IpAddr, thread};

use anyhow::{Context as _, Result};
use limiter_common::{key::BucketKey, limit::BUILT_IN, reason::Reason, strategy::Parameters};
use limiter_datapath::kernel::{
    ClockSource, Instance, LogLevel, Settings, SharedMaps, Trial, possible_cpus,
};
use limiter_policy::{
    config::{Buckets, Offenders, Store},
    policy::{CompiledPolicy, Limit, Policy, Rate},
};
use testbed::Frame;

const SECOND: u64 = 1_000_000_000;

/// With the clock stopped, no token comes back by itself.
const NOW: u64 = 1_000 * SECOND;

/// An instance with one bucket that holds more tokens than any test takes.
struct SingleBucket {
    instance: Instance,
    maps: SharedMaps,
    frame: Vec<u8>,
    key: BucketKey,
    parameters: Parameters,
    tables: CompiledPolicy,
    settings: Settings,
}

impl SingleBucket {
    fn new(store: Store) -> Result<Self> {
        let rate = Rate {
            burst: 1 << 30,
            count: 1_000,
            period_ns: SECOND,
        };
        let limit = Limit::of_built_in(&BUILT_IN[0], Some(rate));
        let tables = CompiledPolicy::new(&Policy::from(vec![limit]), possible_cpus())?;
        let buckets = Buckets {
            store,
            capacity: 1024,
            ..Buckets::default()
        };
        let settings = Settings::new(buckets, Offenders::OFF, LogLevel::Off)?;
        let mut instance = Instance::load(&tables, 0, settings, ClockSource::Test)?;
        let maps = instance.take_maps(settings)?;
        instance.set_clock(NOW)?;
        let source: IpAddr = "10.0.0.1".parse()?;
        Ok(Self {
            instance,
            maps,
            frame: Frame::new(source, "10.0.0.2".parse()?).udp(1, 2, b"x")?,
            key: BucketKey::of_source(BUILT_IN[0].id, source.into(), 32),
            parameters: tables.rates[0],
            tables,
            settings,
        })
    }

    fn spend(&self, packets: u32) -> Result<()> {
        self.instance.hammer(&self.frame, packets)?;
        Ok(())
    }

    fn refund(&self, tokens: u64) -> Result<()> {
        let buckets = self.maps.buckets();
        buckets.give_back(
            &self.key,
            &self.parameters,
            Some(tokens),
            &self.tables.units,
            NOW,
        )?;
        Ok(())
    }

    /// The bucket's debt in tokens.
    fn owed(&self) -> Result<u64> {
        let bucket = self.maps.bucket(&self.key)?.context("a bucket")?;
        assert_eq!(bucket.unit, self.parameters.unit);
        let debt = bucket.state.saturating_sub(self.parameters.gcra.ticks(NOW));
        assert_eq!(
            debt % self.parameters.gcra.emission_interval,
            0,
            "whole tokens"
        );
        Ok(debt / self.parameters.gcra.emission_interval)
    }
}

/// One CPU spends, two threads give back: every packet and every refund counts once.
#[test]
fn refunds_and_packets_add_up() -> Result<()> {
    const PACKETS: u32 = 1_000_000;
    const REFUNDS: u64 = 50_000;
    for store in [Store::Table, Store::Hash] {
        add_up(store, PACKETS, REFUNDS)?;
    }
    Ok(())
}

fn add_up(store: Store, packets: u32, refunds: u64) -> Result<()> {
    let one = SingleBucket::new(store)?;
    // The debt is always larger than a refund.
    one.spend(packets)?;
    thread::scope(|scope| -> Result<()> {
        let give_back = || (0..refunds).try_for_each(|_| one.refund(2));
        let threads = [scope.spawn(give_back), scope.spawn(give_back)];
        one.spend(packets)?;
        for thread in threads {
            thread.join().expect("the thread does not panic")?;
        }
        Ok(())
    })?;
    let passed = one.maps.reason_traffic(0, Reason::WithinLimits)?.packets;
    assert_eq!(one.owed()?, passed - 2 * 2 * refunds);
    let contended = one.maps.reason_traffic(0, Reason::Contended)?.packets;
    assert_eq!(passed + contended, 2 * u64::from(packets));
    Ok(())
}

#[test]
fn no_more_is_given_back_than_is_owed() -> Result<()> {
    for store in [Store::Table, Store::Hash] {
        let one = SingleBucket::new(store)?;
        // A refund makes no bucket.
        one.refund(1)?;
        assert_eq!(one.maps.bucket_count()?, 0);
        one.spend(10)?;
        one.refund(3)?;
        assert_eq!(one.owed()?, 7);
        one.refund(8)?;
        assert_eq!(one.owed()?, 0);
        one.spend(2)?;
        assert_eq!(one.owed()?, 2);
    }
    Ok(())
}

/// A bucket that had no packet since its limit's rate changed gets back its tokens at their present
/// value.
#[test]
fn tokens_are_given_back_in_whatever_unit() -> Result<()> {
    let twice_as_fast = Rate {
        burst: 1 << 30,
        count: 2_000,
        period_ns: SECOND,
    };
    for store in [Store::Table, Store::Hash] {
        let one = SingleBucket::new(store)?;
        let mut trial = Trial::new(&one.tables, one.settings.buckets, Offenders::OFF)?;
        for _ in 0..10 {
            trial.judge(NOW, &one.frame)?;
        }
        let limit = Limit::of_built_in(&BUILT_IN[0], Some(twice_as_fast));
        let tables = CompiledPolicy::with_units(
            &Policy::from(vec![limit]),
            &one.tables.units,
            possible_cpus(),
        )?;
        let parameters = tables.rates[0];
        assert_ne!(parameters.unit, one.parameters.unit);
        trial.replace(&tables)?;
        let maps = trial.maps();
        for left in [7, 5] {
            let tokens = if left == 7 { 3 } else { 2 };
            let buckets = maps.buckets();
            buckets.give_back(&one.key, &parameters, Some(tokens), &tables.units, NOW)?;
            let bucket = maps.bucket(&one.key)?.context("a bucket")?;
            assert_eq!(bucket.unit, parameters.unit, "{store:?}");
            let debt = bucket.state - parameters.gcra.ticks(NOW);
            assert_eq!(debt, left * parameters.gcra.emission_interval, "{store:?}");
        }
    }
    Ok(())
}
