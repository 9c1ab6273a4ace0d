//! The metrics of automatic bans.

use std::fmt;

use limiter_daemon::automatic::{Outcome, Outcomes};
use limiter_policy::policy::Policy;
use limiter_protocol::GuardStatus;
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, gauge::ConstGauge},
};

use super::labelled::{LabelledRow, counters};

/// Encodes the outcomes of limits that ban.
pub(super) fn encode(
    outcomes: &Outcomes,
    policy: &Policy,
    encoder: &mut DescriptorEncoder,
) -> fmt::Result {
    let limits = policy.limits.iter().filter(|limit| limit.ban.is_some());
    let rows: Vec<LabelledRow<2, u64>> = limits
        .flat_map(|limit| {
            Outcome::ALL.map(|outcome| {
                let labels = [
                    ("limit", limit.name.clone()),
                    ("outcome", outcome.name().to_owned()),
                ];
                (labels, outcomes.of(limit.id, outcome))
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

/// Encodes whether the guard knows the addresses to protect from bans.
pub(super) fn guard(status: &GuardStatus, encoder: &mut DescriptorEncoder) -> fmt::Result {
    ConstGauge::new(i64::from(status.error.is_some())).encode(encoder.encode_descriptor(
        "limiter_guard_blind",
        "1: the guard cannot find the addresses that it must spare, so no source is banned automatically",
        None,
        MetricType::Gauge,
    )?)
}
