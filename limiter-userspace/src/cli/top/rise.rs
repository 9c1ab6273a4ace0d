//! How fast a count rises.

use std::time::Duration;

/// Returns the rise of a count per second; `None`: no time has passed.
#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
pub(super) fn per_second(rose: u64, elapsed: Duration) -> Option<f64> {
    (!elapsed.is_zero()).then(|| rose as f64 / elapsed.as_secs_f64())
}
