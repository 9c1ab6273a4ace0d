//! Why no packet is answered, for the status.

use std::{
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// `None`: this host's own addresses are known.
#[derive(Default)]
pub(super) struct NoAnswers(Mutex<Option<String>>);

impl NoAnswers {
    pub(super) fn reason(&self) -> Option<String> {
        self.locked().clone()
    }

    /// Replaces the reason; returns the previous one.
    pub(super) fn set(&self, reason: Option<String>) -> Option<String> {
        mem::replace(&mut self.locked(), reason)
    }

    fn locked(&self) -> MutexGuard<'_, Option<String>> {
        // A panic elsewhere spoils no text.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
