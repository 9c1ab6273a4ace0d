//! Counts what became of sources that limits would ban.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use limiter_common::limit::LimitId;

/// What became of a source that a limit would ban.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It is banned.
    Banned,
    /// The limit's `ban` only observes.
    WouldBan,
    /// It must not be banned, or there is no room for more bans.
    Refused,
    /// So many are banned at once that its turn has not come yet.
    Delayed,
    /// The guard cannot tell whether it may be banned; each look counts again.
    HeldBack,
    /// The limit bans only proven sources, and it was not.
    NotProven,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 6] = [
        Self::Banned,
        Self::WouldBan,
        Self::Refused,
        Self::Delayed,
        Self::HeldBack,
        Self::NotProven,
    ];

    /// Its name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Banned => "banned",
            Self::WouldBan => "would_ban",
            Self::Refused => "refused",
            Self::Delayed => "delayed",
            Self::HeldBack => "held_back",
            Self::NotProven => "not_proven",
        }
    }
}

/// How often each outcome came, since the daemon started.
#[derive(Debug, Default)]
pub struct Outcomes(Mutex<BTreeMap<(LimitId, Outcome), u64>>);

impl Outcomes {
    /// Returns how often an outcome came for a limit.
    #[must_use]
    pub fn of(&self, limit: LimitId, outcome: Outcome) -> u64 {
        self.all().get(&(limit, outcome)).copied().unwrap_or(0)
    }

    pub(super) fn add(&self, limit: LimitId, outcome: Outcome, number: u64) {
        *self.all().entry((limit, outcome)).or_default() += number;
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<(LimitId, Outcome), u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
