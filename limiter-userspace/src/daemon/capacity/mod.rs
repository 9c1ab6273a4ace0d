//! The automatic rates that were found, for whoever asks.

mod status;

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use limiter_common::limit::LimitId;
use limiter_datapath::kernel::DatapathError;

pub(super) use self::status::status;
use crate::capacity::{Finder, Heard, Kind, ReadDistressError};

/// What the thread that finds the rates and the rest of the daemon exchange.
#[derive(Default)]
pub(super) struct Capacity {
    shared: Mutex<Shared>,
    /// Notified when the daemon ends.
    over: Condvar,
}

/// Locked only for as long as it takes to store or take something.
#[derive(Default)]
struct Shared {
    is_over: bool,
    found: Found,
}

/// The automatic rates of the policy in force.
#[derive(Clone, Default)]
pub(super) struct Found {
    pub(super) finders: BTreeMap<LimitId, Finder>,
    /// Why the floors are in force; `None`: the rates are being found.
    pub(super) error: Option<Arc<FindError>>,
}

/// The rates cannot be found.
#[derive(Debug, thiserror::Error)]
pub(super) enum FindError {
    /// It is not known what the host lost.
    #[error(transparent)]
    Distress(#[from] ReadDistressError),
    /// No socket that asks for others is available.
    #[error("cannot ask for UDP sockets: {0}")]
    Sockets(io::Error),
    /// The kernel refused.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
}

/// Distress by kind, in the order of [`Kind::ALL`]; `None`: none of that kind.
type Distress = [Option<Heard>; Kind::ALL.len()];

impl Capacity {
    /// Waits so long; returns whether the daemon has ended meanwhile.
    pub(super) fn wait(&self, pause: Duration) -> bool {
        let waited = self
            .over
            .wait_timeout_while(self.locked(), pause, |shared| !shared.is_over);
        let (shared, _) = waited.unwrap_or_else(PoisonError::into_inner);
        shared.is_over
    }

    /// Ends the waiting: the daemon ends.
    pub(super) fn end(&self) {
        self.locked().is_over = true;
        self.over.notify_one();
    }

    /// Stores what was found last.
    pub(super) fn store(&self, found: Found) {
        self.locked().found = found;
    }

    /// Returns what distress a limit heard, and why the rates cannot be found, if so.
    fn of(&self, limit: LimitId) -> (Distress, Option<Arc<FindError>>) {
        let shared = self.locked();
        let finder = shared.found.finders.get(&limit);
        let heard = finder.map_or_else(Distress::default, |finder| *finder.heard());
        (heard, shared.found.error.clone())
    }

    fn locked(&self) -> MutexGuard<'_, Shared> {
        // The value is valid after each assignment, so a panic elsewhere spoils nothing.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
