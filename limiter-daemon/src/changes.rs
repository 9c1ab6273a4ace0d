//! The history of policy changes since the daemon started, and the change that waits to be confirmed.

use std::time::Instant;

use jiff::Timestamp;
use limiter_datapath::kernel::PreviousPolicy;

use limiter_protocol::{History, LastReload};

#[derive(Default)]
pub(super) struct Changes {
    history: History,
    unconfirmed: Option<PendingChange>,
    /// Set when the daemon ends: the thread that waits for confirmations ends, too.
    pub(super) is_over: bool,
}

/// A change that is reverted unless it is confirmed.
struct PendingChange {
    previous: PreviousPolicy,
    confirmer: Confirmer,
    until: Instant,
}

/// Who confirms a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Confirmer {
    /// An operator of this host.
    Operator,
    /// The node that leads a rollout.
    Fleet,
}

impl Changes {
    /// Records a reload.
    pub(super) fn record(&mut self, at: Timestamp, error: Option<String>) {
        match error {
            None => self.history.succeeded += 1,
            Some(_) => self.history.failed += 1,
        }
        self.history.last = Some(LastReload { at, error });
    }

    pub(super) fn history(&self, now: Instant) -> History {
        History {
            unconfirmed_for_ns: self.unconfirmed_for_ns(now),
            ..self.history.clone()
        }
    }

    /// Nanoseconds until the waiting change is reverted; `None`: none waits.
    pub(super) fn unconfirmed_for_ns(&self, now: Instant) -> Option<u64> {
        let left = self.deadline()?.saturating_duration_since(now);
        Some(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Makes a change wait for confirmation until the given time.
    pub(super) fn await_confirmation(
        &mut self,
        previous: PreviousPolicy,
        confirmer: Confirmer,
        until: Instant,
    ) {
        self.unconfirmed = Some(PendingChange {
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

    /// Moves the deadline of a change that the fleet is to confirm, to a later or an earlier time. A change that is
    /// due stays due.
    pub(super) fn wait_for_fleet(&mut self, until: Instant, now: Instant) {
        if let Some(unconfirmed) = &mut self.unconfirmed
            && unconfirmed.confirmer == Confirmer::Fleet
            && unconfirmed.until > now
        {
            unconfirmed.until = until;
        }
    }

    /// The deadline of the waiting change.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.unconfirmed
            .as_ref()
            .map(|unconfirmed| unconfirmed.until)
    }

    /// Whether a change is to be reverted `now`.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.deadline().is_some_and(|deadline| deadline <= now)
    }

    /// Ends the wait; returns the policy before the waiting change.
    pub(super) fn take_unconfirmed(&mut self) -> Option<PreviousPolicy> {
        self.unconfirmed
            .take()
            .map(|unconfirmed| unconfirmed.previous)
    }
}
