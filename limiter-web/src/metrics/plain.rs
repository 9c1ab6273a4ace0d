//! Metrics without labels.

use std::fmt;

use limiter_protocol::{Status, web::Measurements};
use limiter_report::numbers::{Kind, Metric, NUMBERS};
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

/// Converts a number to a gauge's type, saturating.
pub(super) fn gauge_of(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Encodes the numbers of the status.
pub(super) fn status(status: &Status, encoder: &mut DescriptorEncoder) -> fmt::Result {
    for number in &NUMBERS {
        if let (Some(Metric { name, help, kind }), Some(value)) =
            (&number.metric, (number.value)(status))
        {
            encode(name, help, *kind, value, encoder)?;
        }
    }
    Ok(())
}

/// Encodes the fill levels of tables, and the record of offenders.
pub(super) fn tables(measurements: &Measurements, encoder: &mut DescriptorEncoder) -> fmt::Result {
    let (buckets, recording) = (&measurements.buckets, &measurements.recording);
    let tables = [
        (
            "limiter_buckets_in_debt",
            "Buckets that are not full, of all sets; the others take no room",
            Kind::Gauge,
            buckets.entries,
        ),
        (
            "limiter_buckets_capacity",
            "Buckets that there is room for",
            Kind::Gauge,
            buckets.capacity,
        ),
        (
            "limiter_offender_records",
            "Drops recorded under their offender",
            Kind::Counter,
            recording.recorded,
        ),
        (
            "limiter_offender_records_skipped",
            "Drops not recorded for lack of allowance or room",
            Kind::Counter,
            recording.skipped,
        ),
        (
            "limiter_offender_insertions",
            "Offenders and names inserted into the record; the ones that limiter_offenders lacks were forgotten",
            Kind::Counter,
            recording.inserted,
        ),
        (
            "limiter_offenders",
            "Offenders, and names that they asked for, that are remembered",
            Kind::Gauge,
            measurements.offenders,
        ),
    ];
    let names = measurements.cached_names.iter().flat_map(|names| {
        [
            (
                "limiter_known_names",
                "Names of DNS queries that limits on new names know, counted at most ten seconds ago",
                Kind::Gauge,
                names.entries,
            ),
            (
                "limiter_known_names_capacity",
                "The most names that can be known",
                Kind::Gauge,
                names.capacity,
            ),
        ]
    });
    let mut all = tables.into_iter().chain(names);
    all.try_for_each(|(name, help, kind, number)| encode(name, help, kind, number, encoder))
}

/// Encodes a number.
pub(super) fn encode(
    name: &str,
    help: &str,
    kind: Kind,
    number: u64,
    encoder: &mut DescriptorEncoder,
) -> fmt::Result {
    match kind {
        Kind::Counter => ConstCounter::new(number).encode(encoder.encode_descriptor(
            name,
            help,
            None,
            MetricType::Counter,
        )?),
        Kind::Gauge => ConstGauge::new(gauge_of(number)).encode(encoder.encode_descriptor(
            name,
            help,
            None,
            MetricType::Gauge,
        )?),
    }
}
