//! The metrics of connections open at once.

use std::fmt;

use limiter_protocol::Status;
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, gauge::ConstGauge},
};

use super::plain::gauge_of;

/// Encodes the open connections of each limit, under a policy that limits them.
pub(super) fn encode(status: &Status, encoder: &mut DescriptorEncoder) -> fmt::Result {
    if status.connections.is_none() {
        return Ok(());
    }
    let mut family = encoder.encode_descriptor(
        "limiter_limit_connections_open",
        "Open TCP connections that a limit counts, of all keys together",
        None,
        MetricType::Gauge,
    )?;
    for (limit, status) in &status.limits {
        if let Some(open) = status.open {
            let labels = [("limit", limit.as_str())];
            ConstGauge::new(gauge_of(open)).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}
