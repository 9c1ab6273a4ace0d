//! The daemon's current warnings, for its status and metrics.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Warnings, by the interface or limit that each is about.
#[derive(Default)]
pub(super) struct Warnings(Mutex<BTreeMap<String, String>>);

impl Warnings {
    pub(super) fn all(&self) -> BTreeMap<String, String> {
        self.locked().clone()
    }

    pub(super) fn set(&self, warnings: BTreeMap<String, String>) {
        *self.locked() = warnings;
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        // A panic elsewhere spoils no text.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
