//! Policies for tests.

use limiter_policy::{config, policy::Policy};

#[track_caller]
pub(crate) fn policy(configuration: &str) -> Policy {
    let config = config::parse(configuration, "test");
    config.unwrap_or_else(|errors| panic!("{errors}")).policy
}

/// Returns the policy of one limit, `All`, on all sources together, with the additional fields `more`.
#[track_caller]
pub(crate) fn total(more: &str) -> Policy {
    policy(&format!(
        "limits: {{All: {{id: total, cost: packets, {more}}}}}"
    ))
}
