//! Random pauses, so that nodes do not reconnect all at once.

use std::{
    hash::{BuildHasher as _, RandomState},
    time::Duration,
};

/// Returns a random pause between half and all of `pause`.
pub(super) fn jittered(pause: Duration) -> Duration {
    let random = RandomState::new().hash_one(0) % 512;
    let part = u32::try_from(random).unwrap_or_default() + 512;
    pause * part / 1024
}
