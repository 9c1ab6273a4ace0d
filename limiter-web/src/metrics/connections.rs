//! The metrics of connections open at once.

use std::{collections::BTreeMap, fmt};

use limiter_protocol::ConnectionsStatus;
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

use super::number::gauge_of;

/// Encodes the open connections, under a policy that limits them.
pub(super) fn encode(
    status: &ConnectionsStatus,
    open: &BTreeMap<String, u64>,
    encoder: &mut DescriptorEncoder,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(
        "limiter_limit_connections_open",
        "Open TCP connections that a limit counts, of all keys together",
        None,
        MetricType::Gauge,
    )?;
    for (limit, open) in open {
        let labels = [("limit", limit.as_str())];
        ConstGauge::new(gauge_of(*open)).encode(family.encode_family(&labels)?)?;
    }
    let counted = ConstGauge::new(gauge_of(status.counted));
    counted.encode(encoder.encode_descriptor(
        "limiter_connections_open",
        "Open TCP connections that limits with cost connections count",
        None,
        MetricType::Gauge,
    )?)?;
    if let Some(tracked) = status.tracked {
        let tracked = ConstGauge::new(gauge_of(tracked));
        tracked.encode(encoder.encode_descriptor(
            "limiter_connections_forwarded",
            "Open TCP connections of these that the host forwards",
            None,
            MetricType::Gauge,
        )?)?;
    }
    let uncounted = ConstCounter::new(status.uncounted);
    uncounted.encode(encoder.encode_descriptor(
        "limiter_connections_uncounted",
        "TCP connections that such a limit did not count for lack of room",
        None,
        MetricType::Counter,
    )?)
}
