//! Limits whose strategy changes.

use super::{by_name, joined};
use crate::policy::{Limit, Policy};

/// Returns the names of the limits whose strategy `new` changes: the new strategy cannot use the
/// old one's states.
#[must_use]
pub fn begun_anew(old: &Policy, new: &Policy) -> Vec<String> {
    let differs = |old: &Limit, new: &Limit| old.strategy != new.strategy;
    joined(by_name(old), by_name(new))
        .filter(|(_, old, new)| old.zip(*new).is_some_and(|(old, new)| differs(old, new)))
        .map(|(name, _, _)| name.to_owned())
        .collect()
}
