//! Automatic rates: passes them from the thread that finds them to the rest of the daemon.

mod status;

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use limiter_common::limit::LimitId;
use limiter_datapath::kernel::DatapathError;
use limiter_host::capacity::{Finder, OverloadCount, ReadOverloadError};
use limiter_protocol::OverloadKind;

pub(super) use self::status::status;

/// Shared between the thread that finds the rates and the rest of the daemon.
#[derive(Default)]
pub(super) struct Capacity {
    shared: Mutex<CapacityState>,
    /// Notified when the daemon ends.
    over: Condvar,
}

/// Locked only to store or copy a value.
#[derive(Default)]
struct CapacityState {
    is_over: bool,
    found: RateFinders,
}

/// The automatic rates of the policy in force.
#[derive(Clone, Default)]
pub(super) struct RateFinders {
    pub(super) finders: BTreeMap<LimitId, Finder>,
    /// Why the floors are in force; `None`: the rates are being found.
    pub(super) error: Option<Arc<FindError>>,
}

/// Why the rates cannot be found.
#[derive(Debug, thiserror::Error)]
pub(super) enum FindError {
    /// The host's losses cannot be read.
    #[error(transparent)]
    Overload(#[from] ReadOverloadError),
    /// There is no socket to query other sockets with.
    #[error("cannot ask for UDP sockets: {0}")]
    Sockets(io::Error),
    /// The kernel refused.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
}

/// Overload by kind, in the order of [`OverloadKind::ALL`]; `None`: none of that kind.
type OverloadCounts = [Option<OverloadCount>; OverloadKind::ALL.len()];

impl Capacity {
    /// Waits for the pause; returns whether the daemon has ended meanwhile.
    pub(super) fn wait(&self, pause: Duration) -> bool {
        let waited = self
            .over
            .wait_timeout_while(self.locked(), pause, |shared| !shared.is_over);
        let (shared, _) = waited.unwrap_or_else(PoisonError::into_inner);
        shared.is_over
    }

    /// Ends the thread's waiting.
    pub(super) fn end(&self) {
        self.locked().is_over = true;
        self.over.notify_one();
    }

    /// Replaces the rates.
    pub(super) fn store(&self, found: RateFinders) {
        self.locked().found = found;
    }

    /// Returns the overload that a limit's finder saw, and why the rates cannot be found, if so.
    fn of(&self, limit: LimitId) -> (OverloadCounts, Option<Arc<FindError>>) {
        let shared = self.locked();
        let finder = shared.found.finders.get(&limit);
        let overloads = finder.map_or_else(OverloadCounts::default, |finder| *finder.overloads());
        (overloads, shared.found.error.clone())
    }

    fn locked(&self) -> MutexGuard<'_, CapacityState> {
        // The value is valid after each assignment, so a panic elsewhere spoils nothing.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
