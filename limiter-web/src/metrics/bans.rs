//! The metrics of bans.

use std::fmt;

use limiter_protocol::web::{BanTotals, Measurements};
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, gauge::ConstGauge},
};

use super::labelled::{LabelledRow, counters};

pub(super) fn encode(measurements: &Measurements, encoder: &mut DescriptorEncoder) -> fmt::Result {
    let mut family = encoder.encode_descriptor(
        "limiter_bans",
        "Bans in force, by address family and origin",
        None,
        MetricType::Gauge,
    )?;
    for (origin, counts) in &measurements.bans {
        for (address_family, count) in ["ipv4", "ipv6"].into_iter().zip(counts) {
            let labels = [("family", address_family), ("origin", *origin)];
            ConstGauge::new(i64::from(*count)).encode(family.encode_family(&labels)?)?;
        }
    }
    let rows = |number: fn(&BanTotals) -> u64| -> Vec<LabelledRow<2, u64>> {
        let origins = measurements.ban_totals.iter();
        let rows = origins.map(|of_origin| {
            let labels = [
                ("limit", of_origin.limit.clone()),
                ("origin", of_origin.origin.to_owned()),
            ];
            (labels, number(&of_origin.totals))
        });
        rows.collect()
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
