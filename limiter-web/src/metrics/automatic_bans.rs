//! The metrics of automatic bans.

use std::fmt;

use limiter_protocol::web::LimitMeasurements;
use prometheus_client::encoding::DescriptorEncoder;

use super::labelled::{LabelledRow, counters};

/// Encodes the outcomes of limits that ban.
pub(super) fn encode(limits: &[LimitMeasurements], encoder: &mut DescriptorEncoder) -> fmt::Result {
    let rows: Vec<LabelledRow<2, u64>> = limits
        .iter()
        .flat_map(|limit| {
            let outcomes = limit.bans.iter();
            outcomes.map(|(outcome, number)| {
                let labels = [
                    ("limit", limit.limit.clone()),
                    ("outcome", (*outcome).to_owned()),
                ];
                (labels, *number)
            })
        })
        .collect();
    counters(
        encoder,
        "limiter_automatic_bans",
        "Bans that each limit made, would have made, was refused, or put off to the next poll; held_back: the guard could not tell whether to allow them",
        &rows,
    )
}
