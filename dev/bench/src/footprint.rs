//! The limiter's footprint on an idle machine: kernel memory, and time to start.

use std::time::{Duration, Instant};

use anyhow::Result;
use bench_common::{Layout, Sink};
use limiter_policy::config::Store;
use serde::Serialize;

use crate::{
    contender::{Contender, Kind, Limits, Terms},
    map_memory,
};

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Footprint {
    /// Bytes of kernel memory with room for a million buckets.
    pub(crate) million_buckets_bytes: u64,
    /// The additional bytes with 100 000 overrides.
    pub(crate) overrides_bytes: u64,
    /// The time to read, compile and load the overrides.
    pub(crate) overrides_seconds: f64,
}

/// Loads the limiter with one limit, and with 100 000 overrides.
pub(crate) fn measure() -> Result<Footprint> {
    let (plain, _) = load(Limits::Address)?;
    let (with_overrides, time) = load(Limits::ManyOverrides)?;
    Ok(Footprint {
        million_buckets_bytes: plain,
        overrides_bytes: with_overrides.saturating_sub(plain),
        overrides_seconds: time.as_secs_f64(),
    })
}

fn load(limits: Limits) -> Result<(u64, Duration)> {
    let contender = Contender {
        name: "",
        kind: Kind::Limiter(Store::default(), limits),
    };
    // The object that the daemon loads.
    let terms = Terms {
        layout: Layout::V4,
        sources_log2: 0,
        per_second: 1000,
        overridden: None,
        sink: Sink::Nothing,
        draw: false,
    };
    let before = map_memory::of_all()?;
    let start = Instant::now();
    let loaded = contender.load(&terms)?;
    let time = start.elapsed();
    let memory = map_memory::of_all()?.saturating_sub(before);
    drop(loaded);
    Ok((memory, time))
}
