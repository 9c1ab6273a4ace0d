//! The automatic rates that were found, for whoever asks.

mod status;

use std::{
    collections::BTreeMap,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use limiter_common::limit::LimitId;

pub(super) use self::status::status;
use crate::capacity::Finder;

/// What the thread and the rest of the daemon exchange.
#[derive(Default)]
pub(super) struct Capacity {
    shared: Mutex<Shared>,
    /// Notified when the daemon ends.
    pub(super) over: Condvar,
}

/// What they exchange, locked only for as long as it takes to store or take something.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) is_over: bool,
    pub(super) found: Found,
}

/// The automatic rates of the policy in force.
#[derive(Clone, Default)]
pub(super) struct Found {
    pub(super) finders: BTreeMap<LimitId, Finder>,
    /// Why the floors are in force; `None`: the rates are being found.
    pub(super) error: Option<String>,
}

impl Capacity {
    /// Returns what was found last.
    fn found(&self) -> Found {
        self.locked().found.clone()
    }

    pub(super) fn locked(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
