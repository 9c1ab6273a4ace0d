//! Counts the outcomes of sources that limits would ban.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use limiter_common::limit::LimitId;

/// The outcome of a source that a limit would ban.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// It is banned.
    Banned,
    /// The limit's `ban` only observes.
    WouldBan,
    /// The guard or `never-ban` protects it, or there is no room for more bans.
    Refused,
    /// Too many sources are due at once; it waits for its turn.
    Delayed,
    /// The guard does not know whether it is protected; each poll counts again.
    Deferred,
    /// The limit bans only proven sources, and this is not one.
    NotProven,
}

impl Outcome {
    /// All outcomes.
    pub(crate) const ALL: [Self; 6] = [
        Self::Banned,
        Self::WouldBan,
        Self::Refused,
        Self::Delayed,
        Self::Deferred,
        Self::NotProven,
    ];

    /// The label in metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Banned => "banned",
            Self::WouldBan => "would_ban",
            Self::Refused => "refused",
            Self::Delayed => "delayed",
            Self::Deferred => "held_back",
            Self::NotProven => "not_proven",
        }
    }
}

/// The number of sources by limit and outcome, since the daemon started.
#[derive(Debug, Default)]
pub(crate) struct Outcomes(Mutex<BTreeMap<(LimitId, Outcome), u64>>);

impl Outcomes {
    /// The number of a limit's sources with an outcome.
    pub(crate) fn of(&self, limit: LimitId, outcome: Outcome) -> u64 {
        self.all().get(&(limit, outcome)).copied().unwrap_or(0)
    }

    pub(super) fn add(&self, limit: LimitId, outcome: Outcome, number: u64) {
        *self.all().entry((limit, outcome)).or_default() += number;
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<(LimitId, Outcome), u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
