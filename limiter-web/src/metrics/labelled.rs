//! Counters with labels.

use std::fmt;

use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, counter::ConstCounter},
};

pub(super) type LabelledRow<const N: usize, T> = ([(&'static str, String); N], T);

pub(super) fn counters<const N: usize>(
    encoder: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    rows: &[LabelledRow<N, u64>],
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, number) in rows {
        ConstCounter::new(*number).encode(family.encode_family(labels)?)?;
    }
    Ok(())
}
