//! The metrics of server names of connections and QUIC flows.

use std::{collections::BTreeMap, fmt};

use limiter_protocol::ServerNamesStatus;
use prometheus_client::encoding::DescriptorEncoder;

use super::labelled::{LabelledRow, counters};

/// Encodes the outcomes of connections and QUIC flows, under a policy with limits on server names.
pub(super) fn encode(status: &ServerNamesStatus, encoder: &mut DescriptorEncoder) -> fmt::Result {
    let quic = &status.quic;
    counters(
        encoder,
        "limiter_server_name_connections",
        "Connections whose first bytes were read for a server name: named, or the reason for none",
        &outcomes(status.named, &status.nameless),
    )?;
    counters(
        encoder,
        "limiter_server_name_quic",
        "QUIC flows with a server name, as named, and datagrams without one, by reason",
        &outcomes(quic.named, &quic.nameless),
    )?;
    counters(
        encoder,
        "limiter_server_name_datagrams_lost",
        "Datagrams that may say the server name of a QUIC flow and were not read, by reason",
        &rows("reason", &quic.datagrams_lost),
    )?;
    counters(
        encoder,
        "limiter_server_name_segments_lost",
        "Segments that may say a server name and were not read, by reason",
        &rows("reason", &status.segments_lost),
    )
}

/// Returns the number of names, and of flows without a name by the reason.
fn outcomes(named: u64, nameless: &BTreeMap<String, u64>) -> Vec<LabelledRow<1, u64>> {
    let mut outcomes = rows("outcome", nameless);
    outcomes.push(([("outcome", "named".to_owned())], named));
    outcomes
}

fn rows(label: &'static str, counts: &BTreeMap<String, u64>) -> Vec<LabelledRow<1, u64>> {
    let counts = counts.iter();
    counts
        .map(|(name, count)| ([(label, name.clone())], *count))
        .collect()
}
