//! Every strategy in both stores: what it admits, alone and beside others, from two CPUs at once;
//! and the debts of buckets when policies change, from one program to another, and when tokens are
//! given back.

mod all_or_nothing;
mod bounds;
mod contention;
mod refill;
mod reload;
mod restore;
mod threads;
mod together;
mod worked_examples;

use std::net::{IpAddr, Ipv4Addr};

use anyhow::{Context as _, Result};
use limiter_common::{
    limit::BUILT_IN,
    owner::BucketKey,
    reason::Reason,
    strategy::{Level, Parameters, Strategy},
};
use limiter_datapath::kernel::{BucketMaps, SharedMaps, Trial, possible_cpus};
use limiter_policy::{
    config::{Buckets, Offenders, Store},
    policy::{CompiledPolicy, Limit, Policy, Rate},
};
use testbed::Frame;

use crate::engine::START;

const SECOND: u64 = 1_000_000_000;

const STORES: [Store; 2] = [Store::Table, Store::Hash];

/// Makes a limit of `count` packets in `seconds`.
fn limit(strategy: Strategy, count: u64, seconds: u64) -> Limit {
    let rate = Rate {
        burst: count,
        count,
        period_ns: seconds * SECOND,
    };
    Limit {
        strategy,
        ..Limit::of_built_in(&BUILT_IN[0], Some(rate))
    }
}

fn address(source: u32) -> IpAddr {
    Ipv4Addr::from(0x0a00_0000 | source).into()
}

fn key(source: u32) -> BucketKey {
    BucketKey::of_source(BUILT_IN[0].id, address(source).into(), 32)
}

fn frame(source: u32) -> Result<Vec<u8>> {
    Frame::new(address(source), "10.255.0.1".parse()?).udp(1, 2, b"x")
}

/// Returns what a source's bucket holds at that time after the start.
fn level(maps: &SharedMaps, tables: &CompiledPolicy, source: u32, offset_ns: u64) -> Result<Level> {
    let now = START + offset_ns;
    let parameters = &tables.rates[0];
    let state = |key: &BucketKey, unit| -> Result<Option<u64>> {
        let bucket = maps.bucket(key)?;
        Ok(bucket.map(|bucket| tables.units.state(bucket, unit, now)))
    };
    let log = parameters.log(|number| {
        let stamp = state(&key(source).of_part(number), parameters.stamp_unit)?;
        anyhow::Ok(stamp.unwrap_or_default())
    })?;
    Ok(parameters.level(now, state(&key(source), parameters.unit)?, &log))
}

/// The kernel program under one limit.
struct Kernel {
    tables: CompiledPolicy,
    trial: Trial,
}

impl Kernel {
    fn new(limit: Limit, store: Store, capacity: u32) -> Result<Self> {
        let buckets = Buckets {
            store,
            capacity,
            ..Buckets::default()
        };
        let tables = CompiledPolicy::new(&Policy::from(vec![limit]), possible_cpus())?;
        let trial = Trial::with_same_secret(&tables, buckets, Offenders::OFF)?;
        Ok(Self { tables, trial })
    }

    /// Sends a packet from a source at that time after the start; returns whether it passes.
    fn passes(&mut self, source: u32, offset_ns: u64) -> Result<bool> {
        let verdict = self.trial.judge(START + offset_ns, &frame(source)?)?;
        Ok(verdict.reason == Reason::WithinLimits)
    }

    fn spend(&mut self, source: u32, packets: u64, offset_ns: u64) -> Result<()> {
        for _ in 0..packets {
            self.passes(source, offset_ns)?;
        }
        Ok(())
    }

    fn level(&self, source: u32, offset_ns: u64) -> Result<Level> {
        level(self.trial.maps(), &self.tables, source, offset_ns)
    }

    fn remaining(&self, source: u32, offset_ns: u64) -> Result<u64> {
        Ok(self.level(source, offset_ns)?.remaining)
    }

    fn buckets(&self) -> &BucketMaps {
        self.trial.maps().buckets()
    }

    fn parameters(&self) -> Result<&Parameters> {
        self.tables.rates.first().context("a limit")
    }
}
