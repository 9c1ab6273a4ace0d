//! The metrics of the names that are known to limits on new names.

use std::fmt;

use limiter_common::known_names::WAYS;
use limiter_datapath::kernel::{Datapath, DatapathError};
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, gauge::ConstGauge},
};

use super::{census::Census, number::gauge_of};

/// The number of known names, and the room for them.
#[derive(Clone, Copy)]
pub(super) struct KnownNames {
    known: u64,
    capacity: u64,
}

/// Reads the numbers; `None`: the policy in force has no limits on new names.
pub(super) fn read(
    datapath: &Datapath,
    census: &Census<Option<u64>>,
) -> Result<Option<KnownNames>, DatapathError> {
    let count = || Ok(datapath.known_names().map(|count| count as u64));
    let (known, _) = census.numbers(datapath, count)?;
    let lines = datapath.manifest().policy.known_names.lines();
    let capacity = u64::from(lines) * WAYS as u64;
    Ok(known.map(|known| KnownNames { known, capacity }))
}

pub(super) fn encode(names: KnownNames, encoder: &mut DescriptorEncoder) -> fmt::Result {
    for (name, help, number) in [
        (
            "limiter_known_names",
            "Names of DNS queries that limits on new names know, counted at most ten seconds ago",
            names.known,
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
