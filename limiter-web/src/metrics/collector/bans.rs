//! The metrics of bans.

use std::fmt;

use limiter_daemon::{BanCounts, BanTotals, OriginKind};
use limiter_datapath::kernel::Datapath;
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, gauge::ConstGauge},
};

use super::labelled::{LabelledRow, counters};

pub(super) fn encode(
    counts: &BanCounts,
    datapath: &Datapath,
    encoder: &mut DescriptorEncoder,
) -> fmt::Result {
    let mut holding = encoder.encode_descriptor(
        "limiter_bans",
        "Bans in force, by address family and origin",
        None,
        MetricType::Gauge,
    )?;
    for origin in OriginKind::NAMES {
        for (family, count) in ["ipv4", "ipv6"].into_iter().zip(counts.holding(origin)) {
            let labels = [("family", family), ("origin", origin)];
            ConstGauge::new(i64::from(count)).encode(holding.encode_family(&labels)?)?;
        }
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
    let rows = |number: fn(&BanTotals) -> u64| -> Vec<LabelledRow<2, u64>> {
        let row = |origin_kind: OriginKind, limit: &str| {
            let labels = [
                ("limit", limit.to_owned()),
                ("origin", origin_kind.name().to_owned()),
            ];
            (labels, number(&counts.done(origin_kind)))
        };
        let by_hand = OriginKind::BY_HAND
            .into_iter()
            .map(|origin_kind| row(origin_kind, ""));
        let by_limit = limits
            .iter()
            .map(|limit| row(OriginKind::limit(limit.id), &limit.name));
        by_hand.chain(by_limit).collect()
    };
    counters(
        encoder,
        "limiter_bans_made",
        "Bans made since the daemon started, by origin and, if automatic, limit",
        &rows(|done| done.made),
    )?;
    counters(
        encoder,
        "limiter_bans_lifted",
        "Bans lifted since the daemon started, by the origin and limit that made them",
        &rows(|done| done.lifted),
    )?;
    counters(
        encoder,
        "limiter_bans_ended",
        "Bans that expired since the daemon started, by the origin and limit that made them",
        &rows(|done| done.ended),
    )?;
    counters(
        encoder,
        "limiter_bans_evicted",
        "Automatic bans lifted since the daemon started to make room for others, by origin and limit",
        &rows(|done| done.evicted),
    )
}
