//! How the policy has changed since the daemon runs, and the change that waits to be confirmed.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use limiter_datapath::kernel::Previous;

use crate::protocol::{History, LastReload};

/// What is known of changes.
#[derive(Default)]
pub(super) struct Changes {
    history: History,
    unconfirmed: Option<Unconfirmed>,
    /// The daemon ends: nobody has to see to them any more.
    pub(super) is_over: bool,
}

/// A change that is reverted unless it is confirmed.
struct Unconfirmed {
    previous: Previous,
    until: Instant,
}

impl Changes {
    /// Notes a reload.
    pub(super) fn note(&mut self, error: Option<String>) {
        match error {
            None => self.history.succeeded += 1,
            Some(_) => self.history.failed += 1,
        }
        self.history.last = Some(LastReload {
            at: Timestamp::now(),
            error,
        });
    }

    /// The reloads, as of now.
    pub(super) fn history(&self) -> History {
        let left = |unconfirmed: &Unconfirmed| {
            let left = unconfirmed.until.saturating_duration_since(Instant::now());
            u64::try_from(left.as_nanos()).unwrap_or(u64::MAX)
        };
        History {
            unconfirmed_for_ns: self.unconfirmed.as_ref().map(left),
            ..self.history.clone()
        }
    }

    /// From now on a change waits to be confirmed.
    pub(super) fn await_confirmation(&mut self, previous: Previous, patience: Duration) {
        self.unconfirmed = Some(Unconfirmed {
            previous,
            until: Instant::now() + patience,
        });
    }

    /// When the change that waits is to be reverted.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.unconfirmed
            .as_ref()
            .map(|unconfirmed| unconfirmed.until)
    }

    /// Whether a change is to be reverted now.
    pub(super) fn is_due(&self) -> bool {
        self.deadline()
            .is_some_and(|deadline| deadline <= Instant::now())
    }

    /// What was before the change that waits, which waits no more.
    pub(super) fn take_unconfirmed(&mut self) -> Option<Previous> {
        self.unconfirmed
            .take()
            .map(|unconfirmed| unconfirmed.previous)
    }
}
