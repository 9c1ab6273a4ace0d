//! What became of automatic bans.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;

use super::{Labelled, counters};
use crate::{
    daemon::automatic::{Outcome, Outcomes},
    policy::Policy,
};

/// Of the limits that ban.
pub(super) fn encode(
    outcomes: &Outcomes,
    policy: &Policy,
    encoder: &mut DescriptorEncoder,
) -> fmt::Result {
    let limits = policy.limits.iter().filter(|limit| limit.ban.is_some());
    let rows: Vec<Labelled<2, u64>> = limits
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
        "Whom each limit has banned, would ban, was refused to ban, or has put off to the next look",
        &rows,
    )
}
