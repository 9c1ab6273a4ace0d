//! Where answers are lost or may be, for whoever asks.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The warnings about answers, by interface.
#[derive(Default)]
pub(super) struct LostAnswers(Mutex<BTreeMap<String, String>>);

impl LostAnswers {
    /// Returns all troubles.
    pub(super) fn troubles(&self) -> BTreeMap<String, String> {
        self.locked().clone()
    }

    /// Replaces all troubles.
    pub(super) fn set(&self, troubles: BTreeMap<String, String>) {
        *self.locked() = troubles;
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        // A panic elsewhere spoils no text.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
