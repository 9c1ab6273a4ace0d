//! The metrics of the names that are cached for limits on new names.

use std::fmt;

use limiter_common::cached_names::WAYS;
use limiter_datapath::kernel::{Datapath, DatapathError};
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, gauge::ConstGauge},
};

use super::{census::Census, number::gauge_of};

/// The number of cached names, and the room for them.
#[derive(Clone, Copy)]
pub(super) struct CachedNames {
    cached: u64,
    capacity: u64,
}

/// Reads the numbers; `None`: the policy in force has no limits on new names.
pub(super) fn read(
    datapath: &Datapath,
    census: &Census<Option<u64>>,
) -> Result<Option<CachedNames>, DatapathError> {
    let count = || Ok(datapath.cached_names().map(|count| count as u64));
    let (cached, _) = census.numbers(datapath, count)?;
    let lines = datapath.manifest().policy.cached_names.lines();
    let capacity = u64::from(lines) * WAYS as u64;
    Ok(cached.map(|cached| CachedNames { cached, capacity }))
}

pub(super) fn encode(names: CachedNames, encoder: &mut DescriptorEncoder) -> fmt::Result {
    for (name, help, number) in [
        (
            "limiter_known_names",
            "Names of DNS queries that limits on new names know, counted at most ten seconds ago",
            names.cached,
        ),
        (
            "limiter_known_names_capacity",
            "The most names that can be known",
            names.capacity,
        ),
    ] {
        let descriptor = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(gauge_of(number)).encode(descriptor)?;
    }
    Ok(())
}
