//! The configured rates and overrides of each limit, beside its counters.

use std::fmt;

use limiter_common::limit::Cost;
use limiter_policy::policy::{Limit, Policy, Rate};
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, gauge::ConstGauge},
};

use super::number::gauge_of;

const SECOND: f64 = 1e9;

/// Encodes the configured rates of keys without an override. A limit without such a rate has no sample.
pub(super) fn rates(policy: &Policy, encoder: &mut DescriptorEncoder) -> fmt::Result {
    let rates = || {
        let limits = policy.limits.iter();
        limits.filter_map(|limit| Some((limit, limit.default?)))
    };
    let labels = |limit: &'_ Limit| [("limit", limit.name.clone())];
    let mut family = encoder.encode_descriptor(
        "limiter_limit_rate",
        "Tokens that a limit grants a key without an override in a second: its count over its \
         period",
        None,
        MetricType::Gauge,
    )?;
    // Limits on open connections have a number, not a rate.
    for (limit, rate) in rates().filter(|(limit, _)| limit.cost != Cost::Connections) {
        ConstGauge::new(per_second(rate)).encode(family.encode_family(&labels(limit))?)?;
    }
    let mut family = encoder.encode_descriptor(
        "limiter_limit_burst",
        "Tokens in such a key's full bucket; of a window, its count; of connections, how many may be \
         open at once",
        None,
        MetricType::Gauge,
    )?;
    for (limit, rate) in rates() {
        ConstGauge::new(gauge_of(rate.burst)).encode(family.encode_family(&labels(limit))?)?;
    }
    Ok(())
}

pub(super) fn overrides(policy: &Policy, encoder: &mut DescriptorEncoder) -> fmt::Result {
    let mut family = encoder.encode_descriptor(
        "limiter_overrides_active",
        "Overrides in force by limit",
        None,
        MetricType::Gauge,
    )?;
    for limit in &policy.limits {
        let labels = [("limit", limit.name.as_str())];
        ConstGauge::new(gauge_of(limit.overrides.len() as u64))
            .encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a rate on a graph needs no more than the 52 bits of a fraction"
)]
fn per_second(rate: Rate) -> f64 {
    rate.count as f64 / rate.period_ns as f64 * SECOND
}
