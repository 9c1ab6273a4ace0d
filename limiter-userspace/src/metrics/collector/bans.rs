//! The metrics of bans.

use std::fmt;

use limiter_datapath::kernel::Datapath;
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, gauge::ConstGauge},
};

use super::labelled::{Labelled, counters};
use crate::daemon::{BanCounts, BansDone};

pub(super) fn encode(
    counts: &BanCounts,
    datapath: &Datapath,
    encoder: &mut DescriptorEncoder,
) -> fmt::Result {
    let mut holding = encoder.encode_descriptor(
        "limiter_bans",
        "Bans in force, by address family",
        None,
        MetricType::Gauge,
    )?;
    for (family, count) in [("ipv4", counts.holding[0]), ("ipv6", counts.holding[1])] {
        let labels = [("family", family)];
        ConstGauge::new(i64::from(count)).encode(holding.encode_family(&labels)?)?;
    }
    ConstGauge::new(i64::from(datapath.settings().bans.capacity)).encode(
        encoder.encode_descriptor(
            "limiter_bans_capacity",
            "The most bans there is room for",
            None,
            MetricType::Gauge,
        )?,
    )?;
    let limits = &datapath.manifest().policy.limits;
    let by_limit = |number: fn(&BansDone) -> u64| -> Vec<Labelled<1, u64>> {
        let mut rows = vec![([("limit", String::new())], number(&counts.done(None)))];
        rows.extend(limits.iter().map(|limit| {
            let done = counts.done(Some(limit.id));
            ([("limit", limit.name.clone())], number(&done))
        }));
        rows
    };
    counters(
        encoder,
        "limiter_bans_made",
        "Bans made since the daemon started, by limit; an operator's have none",
        &by_limit(|done| done.made),
    )?;
    counters(
        encoder,
        "limiter_bans_lifted",
        "Bans lifted since the daemon started, by the limit that made them",
        &by_limit(|done| done.lifted),
    )?;
    counters(
        encoder,
        "limiter_bans_ended",
        "Bans that expired since the daemon started, by the limit that made them",
        &by_limit(|done| done.ended),
    )?;
    counters(
        encoder,
        "limiter_bans_evicted",
        "Limits' bans lifted since the daemon started to make room for an operator's, by limit",
        &by_limit(|done| done.evicted),
    )
}
