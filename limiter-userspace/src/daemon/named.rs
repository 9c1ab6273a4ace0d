//! Limits by the names that requests give them.

use limiter_common::limit::LimitId;
use thiserror::Error;

use crate::{config::nearest, policy::Policy};

/// No limit has that name.
#[derive(Debug, Error)]
#[error("{0}")]
pub(super) struct UnknownLimit(String);

/// The interned id of the limit of that name.
pub(super) fn limit_named(policy: &Policy, name: &str) -> Result<LimitId, UnknownLimit> {
    let names: Vec<_> = policy.limits.iter().map(|limit| &*limit.name).collect();
    let found = policy.limits.iter().find(|limit| limit.name == name);
    found
        .map(|limit| limit.id)
        .ok_or_else(|| UnknownLimit(nearest::unknown("limit", name, &names)))
}
