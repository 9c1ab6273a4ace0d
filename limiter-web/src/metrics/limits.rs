//! The configuration of each limit, beside its counters.

use std::fmt;

use limiter_policy::policy::Rate;
use limiter_protocol::{Status, web::Measurements};
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, gauge::ConstGauge},
};

use super::plain::gauge_of;

const SECOND: f64 = 1e9;

pub(super) fn encode(measurements: &Measurements, encoder: &mut DescriptorEncoder) -> fmt::Result {
    info(&measurements.status, encoder)?;
    let mut family = encoder.encode_descriptor(
        "limiter_overrides_active",
        "Overrides in force by limit",
        None,
        MetricType::Gauge,
    )?;
    for limit in &measurements.limits {
        let labels = [("limit", limit.limit.as_str())];
        ConstGauge::new(gauge_of(limit.overrides)).encode(family.encode_family(&labels)?)?;
    }
    rates(&measurements.status, encoder)
}

/// Encodes each limit's strategy and, if it has one, its name in Traffic Server.
fn info(status: &Status, encoder: &mut DescriptorEncoder) -> fmt::Result {
    let mut family = encoder.encode_descriptor(
        "limiter_limit_info",
        "Always 1; a limit's strategy, and the prefix and tag of its metrics in Traffic Server",
        None,
        MetricType::Gauge,
    )?;
    for (limit, status) in &status.limits {
        let mut labels = vec![
            ("limit", limit.as_str()),
            ("strategy", status.strategy.as_str()),
        ];
        if let Some(metrics) = &status.metrics {
            labels.push(("prefix", metrics.prefix.as_str()));
            labels.push(("tag", metrics.tag.as_str()));
        }
        ConstGauge::new(1_i64).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

/// Encodes the configured rates of keys without an override. A limit without such a rate has no sample.
fn rates(status: &Status, encoder: &mut DescriptorEncoder) -> fmt::Result {
    let mut family = encoder.encode_descriptor(
        "limiter_limit_rate",
        "Tokens that a limit grants a key without an override in a second: its count over its \
         period",
        None,
        MetricType::Gauge,
    )?;
    for (limit, status) in &status.limits {
        if let Some(rate) = status.rate {
            let labels = [("limit", limit.as_str())];
            ConstGauge::new(per_second(rate)).encode(family.encode_family(&labels)?)?;
        }
    }
    let mut family = encoder.encode_descriptor(
        "limiter_limit_burst",
        "Tokens in such a key's full bucket; of a window, its count; of connections, how many may be \
         open at once",
        None,
        MetricType::Gauge,
    )?;
    for (limit, status) in &status.limits {
        if let Some(burst) = status.connections.or(status.rate.map(|rate| rate.burst)) {
            let labels = [("limit", limit.as_str())];
            ConstGauge::new(gauge_of(burst)).encode(family.encode_family(&labels)?)?;
        }
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
