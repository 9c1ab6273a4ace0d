//! Limits that count by another strategy.

use super::{by_name, joined};
use crate::policy::{Limit, Policy};

/// The names of the limits whose strategy `new` has changed: what their buckets hold of the old
/// one means nothing to the new one.
#[must_use]
pub fn begun_anew(old: &Policy, new: &Policy) -> Vec<String> {
    let differs = |old: &Limit, new: &Limit| old.strategy != new.strategy;
    joined(by_name(old), by_name(new))
        .filter(|(_, old, new)| old.zip(*new).is_some_and(|(old, new)| differs(old, new)))
        .map(|(name, _, _)| name.to_owned())
        .collect()
}
