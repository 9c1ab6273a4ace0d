//! The metrics of automatic rates.

use std::fmt;

use limiter_daemon::Daemon;
use limiter_datapath::kernel::{Datapath, DatapathError};
use limiter_protocol::{AutomaticRate, OverloadKind, OverloadStatus};
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

use super::number::gauge_of;

/// Returns the automatic rates by the names of their limits.
pub(super) fn read(
    daemon: &Daemon,
    datapath: &Datapath,
) -> Result<Vec<(String, AutomaticRate)>, DatapathError> {
    let limits = datapath.manifest().policy.limits.iter();
    let rates = limits.filter_map(|limit| {
        let rate = daemon.automatic_rate(datapath, limit).transpose()?;
        Some(rate.map(|rate| (limit.name.clone(), rate)))
    });
    rates.collect()
}

/// Encodes the rates; no family if there are none.
pub(super) fn encode(
    rates: &[(String, AutomaticRate)],
    encoder: &mut DescriptorEncoder,
) -> fmt::Result {
    if rates.is_empty() {
        return Ok(());
    }
    gauge(
        encoder,
        "limiter_automatic_rate",
        "The rate in force of each limit whose rate is automatic, in tokens a second",
        rates,
        |rate| rate.rate,
    )?;
    gauge(
        encoder,
        "limiter_automatic_rate_found",
        "1: the daemon finds the rate; 0: it cannot, and the floor is in force",
        rates,
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
            let labels = [("limit", limit.as_str()), ("kind", kind.name())];
            ConstCounter::new(intervals).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn gauge(
    encoder: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    rates: &[(String, AutomaticRate)],
    number: impl Fn(&AutomaticRate) -> u64,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (limit, rate) in rates {
        let labels = [("limit", limit.as_str())];
        ConstGauge::new(gauge_of(number(rate))).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}
