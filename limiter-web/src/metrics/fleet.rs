//! The metrics of the fleet.

use std::{collections::BTreeMap, fmt, time::Duration};

use limiter_protocol::{FleetShare, FleetStatus};
use limiter_report::numbers::Kind;
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, gauge::ConstGauge},
};

use super::{
    labelled::{LabelledRow, counters},
    plain::{self, gauge_of},
};

/// Encodes a node's knowledge of its fleet.
pub(super) fn encode(status: &FleetStatus, encoder: &mut DescriptorEncoder) -> fmt::Result {
    for (name, help, value) in gauges(status) {
        if let Some(value) = value {
            plain::encode(name, help, Kind::Gauge, value, encoder)?;
        }
    }
    for (name, help, ns) in [
        (
            "limiter_fleet_delay_seconds",
            "How long the last update of another node was under way, by both nodes' clocks",
            status.delay_ns,
        ),
        (
            "limiter_fleet_lag_seconds",
            "How long something has been in the fleet's store that is not in force here",
            status.lag_ns(),
        ),
    ] {
        if let Some(ns) = ns {
            let gauge = ConstGauge::new(Duration::from_nanos(ns).as_secs_f64());
            gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
        }
    }
    let mut family = encoder.encode_descriptor(
        "limiter_fleet_bans",
        "Bans of other nodes that are in force here, by origin",
        None,
        MetricType::Gauge,
    )?;
    for (origin, count) in &status.bans {
        let labels = [("origin", origin.as_str())];
        ConstGauge::new(gauge_of(*count)).encode(family.encode_family(&labels)?)?;
    }
    encode_shares(status, encoder)?;
    for (name, help, value) in [
        (
            "limiter_fleet_updates_sent",
            "Updates of bans and liftings that were sent to the fleet's store",
            status.sent,
        ),
        (
            "limiter_fleet_updates_received",
            "Updates of other nodes that had something new",
            status.received,
        ),
    ] {
        plain::encode(name, help, Kind::Counter, value, encoder)?;
    }
    counters(
        encoder,
        "limiter_fleet_messages_refused",
        "Messages of other nodes that were refused, by reason",
        &rows("reason", &status.refused),
    )?;
    counters(
        encoder,
        "limiter_fleet_pushes",
        "Policies that the fleet pushed to this node, by what became of them",
        &rows("outcome", &status.pushes),
    )
}

/// Returns the gauges without labels, each with its help; `None`: this node does not share that.
fn gauges(status: &FleetStatus) -> [(&'static str, &'static str, Option<u64>); 13] {
    let sources = status.sources.as_ref();
    let of_leases = |value| (!status.shares.is_empty()).then_some(value);
    [
        (
            "limiter_fleet_connected",
            "1: the fleet's store is connected, and all that it has is known",
            Some(u64::from(status.connected)),
        ),
        (
            "limiter_fleet_unsent",
            "Bans and liftings that are not sent to the fleet's store yet",
            Some(status.unsent),
        ),
        (
            "limiter_fleet_held",
            "Bans of the fleet that are known, with those that were lifted",
            Some(status.held),
        ),
        (
            "limiter_fleet_refused_here",
            "Bans of the fleet that hold elsewhere and are refused here",
            Some(status.refused_here),
        ),
        (
            "limiter_fleet_nodes",
            "Nodes of the fleet that sent a heartbeat within a day",
            Some(status.nodes.len() as u64),
        ),
        (
            "limiter_fleet_nodes_silent",
            "Those of them that sent no heartbeat for a minute",
            Some(status.silent() as u64),
        ),
        (
            "limiter_fleet_policies",
            "Different policies of the nodes that are not silent",
            Some(status.policies() as u64),
        ),
        (
            "limiter_fleet_shares_carried",
            "1: the store leases shares of budgets to this node",
            of_leases(status.leases_error.is_none().into()),
        ),
        (
            "limiter_fleet_sharing_nodes",
            "The nodes that share limits, this one included; 0: this one has no leases",
            of_leases(status.sharing_nodes.unwrap_or_default()),
        ),
        (
            "limiter_fleet_sources_carried",
            "1: nodes share their known sources",
            sources.map(|sources| sources.error.is_none().into()),
        ),
        (
            "limiter_fleet_sources_proven",
            "Sources that this node has proven and shares",
            sources.map(|sources| sources.proven),
        ),
        (
            "limiter_fleet_sources_unsent",
            "Sources with changes that are not sent yet",
            sources.map(|sources| sources.unsent),
        ),
        (
            "limiter_fleet_sources_received",
            "Entries of other nodes about sources that they have proven",
            sources.map(|sources| sources.received),
        ),
    ]
}

/// Extracts a number from a share.
type Value = fn(&FleetShare) -> Option<f64>;

/// Encodes a node's shares of shared limits.
fn encode_shares(status: &FleetStatus, encoder: &mut DescriptorEncoder) -> fmt::Result {
    if status.shares.is_empty() {
        return Ok(());
    }
    let of_shares: [(_, _, Value); 3] = [
        (
            "limiter_fleet_share_ratio",
            "The part that this node has of a shared limit's budget; of many keys: of each \
             that is not active",
            |share| Some(float(share.share_billionths) / 1e9),
        ),
        (
            "limiter_fleet_share_wanted_ratio",
            "The part of a limit's budget with which this node would refuse nobody, at most all",
            |share| (share.active.is_none()).then(|| float(share.wanted_billionths) / 1e9),
        ),
        (
            "limiter_fleet_active_keys",
            "The keys with a lease on this node, or a demand for one",
            |share| share.active.map(float),
        ),
    ];
    for (name, help, value) in of_shares {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (limit, share) in &status.shares {
            if let Some(value) = value(share) {
                let labels = [("limit", limit.as_str())];
                ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
            }
        }
    }
    Ok(())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "shares and counts of keys have at most 30 bits, of the 53 that a float keeps"
)]
fn float(number: u64) -> f64 {
    number as f64
}

fn rows(label: &'static str, counts: &BTreeMap<String, u64>) -> Vec<LabelledRow<1, u64>> {
    let counts = counts.iter();
    counts
        .map(|(value, count)| ([(label, value.clone())], *count))
        .collect()
}
