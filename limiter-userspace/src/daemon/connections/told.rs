//! What the daemon tells of how tracked connections are counted.

use std::sync::{Mutex, PoisonError};

use crate::protocol::TrackingStatus;

/// How they are counted; `None`: the policy does not count them.
#[derive(Default)]
pub(in crate::daemon) struct Told(Mutex<Option<TrackingStatus>>);

impl Told {
    pub(in crate::daemon) fn status(&self) -> Option<TrackingStatus> {
        // A panic elsewhere spoils no text.
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Sets it, and returns what was told before.
    pub(super) fn set(&self, status: Option<TrackingStatus>) -> Option<TrackingStatus> {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *told, status)
    }
}
