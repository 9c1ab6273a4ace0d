//! The metrics of automatic rates.

use std::{collections::BTreeMap, fmt};

use limiter_protocol::{AutomaticRate, LimitStatus, OverloadKind, OverloadStatus};
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

use super::plain::gauge_of;

/// Encodes the rates; no family if there are none.
pub(super) fn encode(
    limits: &BTreeMap<String, LimitStatus>,
    encoder: &mut DescriptorEncoder,
) -> fmt::Result {
    let rates = limits.iter();
    let rates: Vec<_> = rates
        .filter_map(|(limit, status)| Some((limit.as_str(), status.automatic.as_ref()?)))
        .collect();
    if rates.is_empty() {
        return Ok(());
    }
    gauge(
        encoder,
        "limiter_automatic_rate",
        "The rate in force of each limit whose rate is automatic, in tokens a second",
        &rates,
        |rate| rate.rate,
    )?;
    gauge(
        encoder,
        "limiter_automatic_rate_found",
        "1: the daemon finds the rate; 0: it cannot, and the floor is in force",
        &rates,
        |rate| u64::from(rate.error.is_none()),
    )?;
    let mut family = encoder.encode_descriptor(
        "limiter_overload_intervals",
        "Intervals of a quarter of a second in which a limit whose rate is automatic heard of the \
         host's overload",
        None,
        MetricType::Counter,
    )?;
    for (limit, rate) in rates {
        for kind in OverloadKind::ALL {
            let is_it = |overload: &&OverloadStatus| overload.kind == kind.name();
            let heard = rate.overload.iter().find(is_it);
            let intervals = heard.map_or(0, |overload| overload.intervals);
            let labels = [("limit", limit), ("kind", kind.name())];
            ConstCounter::new(intervals).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn gauge(
    encoder: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    rates: &[(&str, &AutomaticRate)],
    number: impl Fn(&AutomaticRate) -> u64,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (limit, rate) in rates {
        let labels = [("limit", *limit)];
        ConstGauge::new(gauge_of(number(rate))).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}
