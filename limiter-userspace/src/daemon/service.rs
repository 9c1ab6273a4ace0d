//! What the daemon tells its service manager, by sd_notify(3). Where there is none, or it does
//! not ask for it, nothing is told.

use std::{convert::Infallible, future};

use sd_notify::NotifyState::{self, Ready, Status, Stopping, Watchdog};
use tracing::warn;

/// Everything is attached and every socket listens.
pub(super) fn ready(status: &str) {
    tell(&[Ready, Status(status)]);
}

/// What is enforced has changed.
pub(super) fn status(status: &str) {
    tell(&[Status(status)]);
}

/// From here on things are taken down.
pub(super) fn stopping() {
    tell(&[Stopping]);
}

/// Says again and again that the daemon is alive, as often as it is asked to; forever. To be
/// awaited beside what the daemon does, so that nothing is said once that hangs.
pub(super) async fn stay_alive() -> Infallible {
    let Some(patience) = sd_notify::watchdog_enabled() else {
        return future::pending().await;
    };
    // Twice in that time, as sd_watchdog_enabled(3) advises.
    let mut ticks = tokio::time::interval(patience / 2);
    loop {
        ticks.tick().await;
        tell(&[Watchdog]);
    }
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        warn!("cannot tell the service manager: {error}");
    }
}
