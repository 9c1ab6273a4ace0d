//! Sieves, and what limits are called in Traffic Server.

use std::fmt;

use limiter_policy::policy::Policy;
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

use crate::protocol::sieves::{EVERYTHING, SieveBrief, SieveUseStatus};

/// What of a use is a metric.
type OfUse<T> = fn(&SieveUseStatus) -> T;

/// Each sieve, its uses, and how full its lists are.
pub(super) fn sieves(sieves: &[SieveBrief], encoder: &mut DescriptorEncoder) -> fmt::Result {
    let uses = || {
        sieves.iter().flat_map(|sieve| {
            let uses = sieve.uses.iter();
            uses.map(|used| (sieve.sieve.as_str(), used))
        })
    };
    let mut family = encoder.encode_descriptor(
        "limiter_sieve_pressure",
        "Lists below this one are rejected; -1: there is no pressure, and nobody is scored",
        None,
        MetricType::Gauge,
    )?;
    for (sieve, used) in uses() {
        let pressure = used.pressure.map_or(-1, i64::from);
        ConstGauge::new(pressure).encode(family.encode_family(&labels(sieve, used))?)?;
    }
    let mut family = encoder.encode_descriptor(
        "limiter_sieve_load_ratio",
        "What arrives, as a share of what the pressure is measured by",
        None,
        MetricType::Gauge,
    )?;
    for (sieve, used) in uses() {
        if let Some(percent) = used.percent {
            let labels = labels(sieve, used);
            ConstGauge::new(percent / 100.0).encode(family.encode_family(&labels)?)?;
        }
    }
    let counts: [(&str, OfUse<u64>); 5] = [
        ("arrived", |used| used.arrived_packets),
        ("scored", |used| used.scored_packets),
        ("contended", |used| used.contended_packets),
        ("iprep", |used| used.iprep_packets),
        ("iprep_perma", |used| used.iprep_perma_packets),
    ];
    let mut family = encoder.encode_descriptor(
        "limiter_sieve_packets",
        "Packets that came to a use of a sieve, those that it scored or could not, and those that it dropped",
        None,
        MetricType::Counter,
    )?;
    for (sieve, used) in uses() {
        for (outcome, count) in counts {
            let [sieve, used_by] = labels(sieve, used);
            let labels = [sieve, used_by, ("outcome", outcome)];
            ConstCounter::new(count(used)).encode(family.encode_family(&labels)?)?;
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
        let entries = i64::try_from(sieve.entries).unwrap_or(i64::MAX);
        ConstGauge::new(entries).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

fn labels<'s>(sieve: &'s str, used: &'s SieveUseStatus) -> [(&'static str, &'s str); 2] {
    let used_by = used.limit.as_deref().unwrap_or(EVERYTHING);
    [("sieve", sieve), ("use", used_by)]
}

/// By which rule limits count, and their names in Traffic Server, of those that have some there.
pub(super) fn limit_info(policy: &Policy, encoder: &mut DescriptorEncoder) -> fmt::Result {
    let mut family = encoder.encode_descriptor(
        "limiter_limit_info",
        "1; a limit's strategy, and the prefix and the tag that its metrics have in Traffic Server",
        None,
        MetricType::Gauge,
    )?;
    for limit in &policy.limits {
        let mut labels = vec![
            ("limit", limit.name.as_str()),
            ("strategy", limit.strategy.name()),
        ];
        if let Some(metrics) = &limit.metrics {
            labels.push(("prefix", metrics.prefix.as_str()));
            labels.push(("tag", metrics.tag.as_str()));
        }
        ConstGauge::new(1_i64).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}
