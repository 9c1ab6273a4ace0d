//! How the policy has changed since the daemon started, and the change that waits to be confirmed.

use std::time::Instant;

use jiff::Timestamp;
use limiter_datapath::kernel::Previous;

use crate::protocol::{History, LastReload};

/// The changes of the policy.
#[derive(Default)]
pub(super) struct Changes {
    history: History,
    unconfirmed: Option<Unconfirmed>,
    /// The daemon is ending: nobody has to wait for confirmations any more.
    pub(super) is_over: bool,
}

/// A change that is reverted unless it is confirmed.
struct Unconfirmed {
    previous: Previous,
    confirmer: Confirmer,
    until: Instant,
}

/// Those who confirm changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Confirmer {
    /// An operator of this host.
    Operator,
    /// The node of the fleet that pushes.
    Fleet,
}

impl Changes {
    /// Notes a reload at that time.
    pub(super) fn note(&mut self, at: Timestamp, error: Option<String>) {
        match error {
            None => self.history.succeeded += 1,
            Some(_) => self.history.failed += 1,
        }
        self.history.last = Some(LastReload { at, error });
    }

    /// Returns the history as of `now`.
    pub(super) fn history(&self, now: Instant) -> History {
        let left = |unconfirmed: &Unconfirmed| {
            let left = unconfirmed.until.saturating_duration_since(now);
            u64::try_from(left.as_nanos()).unwrap_or(u64::MAX)
        };
        History {
            unconfirmed_for_ns: self.unconfirmed.as_ref().map(left),
            ..self.history.clone()
        }
    }

    /// Makes a change wait until then to be confirmed.
    pub(super) fn await_confirmation(
        &mut self,
        previous: Previous,
        confirmer: Confirmer,
        until: Instant,
    ) {
        self.unconfirmed = Some(Unconfirmed {
            previous,
            confirmer,
            until,
        });
    }

    /// Returns who is to confirm the waiting change; `None`: none waits.
    pub(super) fn confirmer(&self) -> Option<Confirmer> {
        let unconfirmed = self.unconfirmed.as_ref();
        unconfirmed.map(|unconfirmed| unconfirmed.confirmer)
    }

    /// Makes a change that the fleet is to confirm wait until then, longer or shorter than before. One that
    /// is due stays so.
    pub(super) fn wait_for_fleet(&mut self, until: Instant, now: Instant) {
        if let Some(unconfirmed) = &mut self.unconfirmed
            && unconfirmed.confirmer == Confirmer::Fleet
            && unconfirmed.until > now
        {
            unconfirmed.until = until;
        }
    }

    /// When the waiting change is to be reverted.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.unconfirmed
            .as_ref()
            .map(|unconfirmed| unconfirmed.until)
    }

    /// Whether a change is to be reverted `now`.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.deadline().is_some_and(|deadline| deadline <= now)
    }

    /// Ends the wait; returns what the waiting change replaced.
    pub(super) fn take_unconfirmed(&mut self) -> Option<Previous> {
        self.unconfirmed
            .take()
            .map(|unconfirmed| unconfirmed.previous)
    }
}
