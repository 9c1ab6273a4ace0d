//! State that a policy cannot take over from its predecessor.

use super::{KnownFate, by_name, joined};
use crate::policy::{Limit, Policy};

/// State that a policy does not take over from its predecessor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiscardedState {
    /// The names of limits with a changed strategy: it cannot read the old one's states.
    pub limits: Vec<String>,
    /// The fate of the known sources; `None`: all stay, or there were none.
    pub known_sources: Option<KnownFate>,
}

/// Returns the state of `old` that `new` does not take over.
#[must_use]
pub fn discarded_state(old: &Policy, new: &Policy) -> DiscardedState {
    let differs = |old: &Limit, new: &Limit| old.strategy != new.strategy;
    let limits = joined(by_name(old), by_name(new))
        .filter(|(_, old, new)| old.zip(*new).is_some_and(|(old, new)| differs(old, new)))
        .map(|(name, _, _)| name.to_owned());
    let (before, after) = (old.standing_in_use(), new.standing_in_use());
    let fate = KnownFate::of(before.as_ref(), after.as_ref());
    DiscardedState {
        limits: limits.collect(),
        known_sources: fate.filter(|fate| fate.may_forget()),
    }
}
