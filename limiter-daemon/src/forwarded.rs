//! The status of counting forwarded connections.

use std::{
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
};

use limiter_protocol::TrackingStatus;

/// `None`: the policy does not count them.
#[derive(Default)]
pub(super) struct ForwardedStatus(Mutex<Option<TrackingStatus>>);

impl ForwardedStatus {
    pub(super) fn status(&self) -> Option<TrackingStatus> {
        self.locked().clone()
    }

    /// Sets the status; returns the previous one.
    pub(super) fn set(&self, status: Option<TrackingStatus>) -> Option<TrackingStatus> {
        mem::replace(&mut *self.locked(), status)
    }

    fn locked(&self) -> MutexGuard<'_, Option<TrackingStatus>> {
        // A panic elsewhere spoils no text.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
