//! The metrics of sieves.

use std::fmt;

use limiter_protocol::sieves::{EVERYTHING, SieveBrief, SieveUseStatus};
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

use super::plain::gauge_of;

/// Encodes each sieve, its uses, and how full its lists are.
pub(super) fn encode(sieves: &[SieveBrief], encoder: &mut DescriptorEncoder) -> fmt::Result {
    let uses = || {
        sieves.iter().flat_map(|sieve| {
            let uses = sieve.uses.iter();
            uses.map(|used| (sieve.sieve.as_str(), used))
        })
    };
    let mut family = encoder.encode_descriptor(
        "limiter_sieve_pressure",
        "Lists below this one are rejected; -1: there is no pressure, and nothing is scored",
        None,
        MetricType::Gauge,
    )?;
    for (sieve, used) in uses() {
        let pressure = used.pressure.map_or(-1, i64::from);
        ConstGauge::new(pressure).encode(family.encode_family(&labels(sieve, used))?)?;
    }
    let mut family = encoder.encode_descriptor(
        "limiter_sieve_load_ratio",
        "Arriving traffic as a share of the limit that the pressure is measured by",
        None,
        MetricType::Gauge,
    )?;
    for (sieve, used) in uses() {
        if let Some(percent) = used.percent {
            let labels = labels(sieve, used);
            ConstGauge::new(percent / 100.0).encode(family.encode_family(&labels)?)?;
        }
    }
    let mut family = encoder.encode_descriptor(
        "limiter_sieve_packets",
        "Packets that reached a use of a sieve, that it scored or could not score, and that it dropped",
        None,
        MetricType::Counter,
    )?;
    for (sieve, used) in uses() {
        for (outcome, count) in used.outcomes() {
            let [sieve, used_by] = labels(sieve, used);
            let labels = [sieve, used_by, ("outcome", outcome)];
            ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
        }
    }
    let mut family = encoder.encode_descriptor(
        "limiter_sieve_entries",
        "Addresses that a sieve knows",
        None,
        MetricType::Gauge,
    )?;
    for sieve in sieves {
        let labels = [("sieve", sieve.sieve.as_str())];
        let entries = gauge_of(sieve.entries);
        ConstGauge::new(entries).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

fn labels<'s>(sieve: &'s str, used: &'s SieveUseStatus) -> [(&'static str, &'s str); 2] {
    let used_by = used.limit.as_deref().unwrap_or(EVERYTHING);
    [("sieve", sieve), ("use", used_by)]
}
