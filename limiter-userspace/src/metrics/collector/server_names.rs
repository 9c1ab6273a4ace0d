//! The metrics of connections' server names.

use std::{collections::BTreeMap, fmt};

use prometheus_client::encoding::DescriptorEncoder;

use super::labelled::{Labelled, counters};
use crate::protocol::ServerNamesStatus;

/// Encodes what came of connections, under a policy that limits by server names.
pub(super) fn encode(status: &ServerNamesStatus, encoder: &mut DescriptorEncoder) -> fmt::Result {
    let mut outcomes = rows("outcome", &status.nameless);
    outcomes.push(([("outcome", "named".to_owned())], status.named));
    counters(
        encoder,
        "limiter_server_name_connections",
        "Connections whose first bytes were read for a server name: named, or why they have none",
        &outcomes,
    )?;
    counters(
        encoder,
        "limiter_server_name_segments_lost",
        "Segments that may say a server name and were not read, by reason",
        &rows("reason", &status.segments_lost),
    )
}

fn rows(label: &'static str, counts: &BTreeMap<String, u64>) -> Vec<Labelled<1, u64>> {
    let counts = counts.iter();
    counts
        .map(|(name, count)| ([(label, name.clone())], *count))
        .collect()
}
