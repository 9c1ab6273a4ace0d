//! Every strategy in both stores: its bounds, alone and beside others, from two CPUs at once. Also
//! the debts of buckets when policies change, when they move from one program to another, and when
//! tokens are given back.

mod all_or_nothing;
mod bounds;
mod contention;
mod reload;
mod reset;
mod restore;
mod threads;
mod together;
mod worked_examples;

use std::net::{IpAddr, Ipv4Addr};

use anyhow::{Context as _, Result};
use limiter_common::{
    key::BucketKey,
    limit::{BUILT_IN, FIRST_CUSTOM_ID, LimitId},
    policy::{classify, parameters_of},
    reason::Reason,
    strategy::{Level, Parameters, Strategy},
};
use limiter_datapath::kernel::{BucketMaps, SharedMaps, Trial, possible_cpus};
use limiter_policy::{
    config::{Buckets, Offenders, Store},
    policy::{CompiledPolicy, Limit, Rate},
};
use testbed::Frame;

use crate::engine::{START, apart};

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

fn frame(source: u32) -> Result<Vec<u8>> {
    frame_to(source, 2)
}

fn frame_to(source: u32, port: u16) -> Result<Vec<u8>> {
    Frame::new(address(source), "10.255.0.1".parse()?).udp(1, port, b"x")
}

/// The level of a source's bucket of the limit at an index, `offset_ns` after the start.
fn level(
    maps: &SharedMaps,
    tables: &CompiledPolicy,
    limit_index: u32,
    source: u32,
    offset_ns: u64,
) -> Result<Level> {
    let now = START + offset_ns;
    let class = classify(tables, &address(source).into()).context("a class")?;
    let parameters = parameters_of(tables, class, limit_index).context("a rate")?;
    let limit = LimitId(tables.limits[limit_index as usize].id);
    let key = BucketKey::of_source(limit, address(source).into(), 32);
    let state = |key: &BucketKey, unit| -> Result<Option<u64>> {
        let bucket = maps.bucket(key)?;
        Ok(bucket.map(|bucket| tables.units.state(bucket, unit, now)))
    };
    let log = parameters.log(|number| {
        let stamp = state(&key.of_part(number), parameters.stamp_unit)?;
        anyhow::Ok(stamp.unwrap_or_default())
    })?;
    Ok(parameters.level(now, state(&key, parameters.unit)?, &log))
}

/// The kernel program under limits that are [`apart`]; one is tried at a time.
struct Kernel {
    tables: CompiledPolicy,
    trial: Trial,
    limit_index: u16,
}

impl Kernel {
    fn new(limits: impl IntoIterator<Item = Limit>, store: Store, capacity: u32) -> Result<Self> {
        let buckets = Buckets {
            store,
            capacity,
            ..Buckets::default()
        };
        let tables = CompiledPolicy::new(&apart(limits), possible_cpus())?;
        let trial = Trial::with_same_secret(&tables, buckets, Offenders::OFF)?;
        Ok(Self {
            tables,
            trial,
            limit_index: 0,
        })
    }

    /// Makes one with a limit of each strategy, in the order of [`Strategy::ALL`].
    fn of_all(store: Store, capacity: u32) -> Result<Self> {
        let limits = Strategy::ALL.map(|strategy| limit(strategy, 10, 100));
        Self::new(limits, store, capacity)
    }

    /// Tries the limit at an index from now on.
    const fn trying(&mut self, limit_index: u16) -> &mut Self {
        self.limit_index = limit_index;
        self
    }

    /// The limit under test.
    const fn limit(&self) -> LimitId {
        LimitId(FIRST_CUSTOM_ID + self.limit_index)
    }

    fn key(&self, source: u32) -> BucketKey {
        BucketKey::of_source(self.limit(), address(source).into(), 32)
    }

    /// Sends a packet from a source, `offset_ns` after the start; returns whether it passes.
    fn passes(&mut self, source: u32, offset_ns: u64) -> Result<bool> {
        let frame = frame_to(source, self.limit().0)?;
        let verdict = self.trial.judge(START + offset_ns, &frame)?;
        Ok(verdict.reason == Reason::WithinLimits)
    }

    fn spend(&mut self, source: u32, packets: u64, offset_ns: u64) -> Result<()> {
        for _ in 0..packets {
            self.passes(source, offset_ns)?;
        }
        Ok(())
    }

    fn level(&self, source: u32, offset_ns: u64) -> Result<Level> {
        let limit_index = self.limit_index.into();
        level(
            self.trial.maps(),
            &self.tables,
            limit_index,
            source,
            offset_ns,
        )
    }

    fn remaining(&self, source: u32, offset_ns: u64) -> Result<u64> {
        Ok(self.level(source, offset_ns)?.remaining)
    }

    fn buckets(&self) -> &BucketMaps {
        self.trial.maps().buckets()
    }

    fn parameters(&self) -> Result<&Parameters> {
        let class = classify(&self.tables, &address(1).into()).context("a class")?;
        parameters_of(&self.tables, class, self.limit_index.into()).context("a rate")
    }
}
