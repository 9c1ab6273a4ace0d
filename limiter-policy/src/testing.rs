//! Policies for tests.

use crate::{config, policy::Policy};

/// Returns the policy of a configuration.
///
/// # Panics
///
/// If the configuration has errors.
#[must_use]
#[track_caller]
pub fn policy(configuration: &str) -> Policy {
    let config = config::parse(configuration, "test");
    config.unwrap_or_else(|errors| panic!("{errors}")).policy
}

/// Returns the policy of one limit, `All`, on all sources together, with the additional fields `more`.
#[must_use]
#[track_caller]
pub fn total(more: &str) -> Policy {
    policy(&format!(
        "limits: {{All: {{id: total, cost: packets, {more}}}}}"
    ))
}
