//! What a policy cannot take over from its predecessor.

use super::{KnownFate, by_name, joined};
use crate::policy::{Limit, Policy};

/// What a policy does not take over from its predecessor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BegunAnew {
    /// The names of the limits whose strategy changes: the new one cannot use the old one's states.
    pub limits: Vec<String>,
    /// What happens to the known sources; `None`: all stay, or there were none.
    pub known_sources: Option<KnownFate>,
}

/// Returns what `new` does not take over from `old`.
#[must_use]
pub fn begun_anew(old: &Policy, new: &Policy) -> BegunAnew {
    let differs = |old: &Limit, new: &Limit| old.strategy != new.strategy;
    let limits = joined(by_name(old), by_name(new))
        .filter(|(_, old, new)| old.zip(*new).is_some_and(|(old, new)| differs(old, new)))
        .map(|(name, _, _)| name.to_owned());
    let (before, after) = (old.standing_in_use(), new.standing_in_use());
    let fate = KnownFate::of(before.as_ref(), after.as_ref());
    BegunAnew {
        limits: limits.collect(),
        known_sources: fate.filter(|fate| fate.may_forget()),
    }
}
