//! The metrics of interfaces.

use std::{collections::BTreeMap, fmt};

use limiter_protocol::Status;
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, gauge::ConstGauge},
};

/// Encodes the interfaces with the program attached, also interfaces that a pattern selects and the daemon passes over.
pub(super) fn encode(status: &Status, encoder: &mut DescriptorEncoder) -> fmt::Result {
    let mut family = encoder.encode_descriptor(
        "limiter_interface_attached",
        "1: the interface is limited; 0: it should be, but does not exist, has another program, or is passed over",
        None,
        MetricType::Gauge,
    )?;
    let misfits = status
        .daemon
        .iter()
        .flat_map(|daemon| daemon.misfits.keys());
    let mut attached: BTreeMap<_, _> = misfits.map(|name| (name.as_str(), false)).collect();
    for interface in &status.interfaces {
        *attached.entry(&interface.name).or_default() |= interface.attached;
    }
    for (name, attached) in attached {
        let labels = [("interface", name)];
        ConstGauge::new(i64::from(attached)).encode(family.encode_family(&labels)?)?;
    }
    let mut family = encoder.encode_descriptor(
        "limiter_interface_mode",
        "1 for the mode in which the program runs on the interface",
        None,
        MetricType::Gauge,
    )?;
    for interface in status
        .interfaces
        .iter()
        .filter(|interface| interface.attached)
    {
        let mode = interface.mode.as_deref().unwrap_or_default();
        let labels = [("interface", interface.name.as_str()), ("mode", mode)];
        ConstGauge::new(1_i64).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}
