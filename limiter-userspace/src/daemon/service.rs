//! What the daemon tells its service manager, by sd_notify(3). Where there is none, or it does
//! not ask for it, nothing is told.

use std::{convert::Infallible, time::Duration};

use sd_notify::NotifyState::{self, Ready, Status, Stopping, Watchdog};
use tracing::{error, warn};

use super::{pulse::Pulses, shared::Daemon};

/// How often to look whether threads live, where no service manager asks for it.
const LOOK: Duration = Duration::from_secs(10);

/// Everything is attached and every socket listens.
pub(super) fn ready(daemon: &Daemon) {
    tell(&[Ready, Status(&text(daemon))]);
}

/// What is enforced has changed.
pub(super) fn status(daemon: &Daemon) {
    tell(&[Status(&text(daemon))]);
}

/// From here on things are taken down.
pub(super) fn stopping() {
    tell(&[Stopping]);
}

/// Says again and again that the daemon is alive, as often as it is asked to, as long as all its
/// threads are; forever. To be awaited beside what the daemon does, so that nothing is said once
/// that hangs. Threads that hang are told of in the log in any case.
pub(super) async fn stay_alive(pulses: &Pulses) -> Infallible {
    let patience = sd_notify::watchdog_enabled();
    // Twice in that time, as sd_watchdog_enabled(3) advises.
    let mut ticks = tokio::time::interval(patience.map_or(LOOK, |patience| patience / 2));
    let mut told = Vec::new();
    loop {
        ticks.tick().await;
        let late = pulses.late();
        for what in late.iter().filter(|what| !told.contains(*what)) {
            error!("the thread that {what} hangs");
        }
        if late.is_empty() && patience.is_some() {
            tell(&[Watchdog]);
        }
        told = late;
    }
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        warn!("cannot tell the service manager: {error}");
    }
}

/// What the service manager shows.
fn text(daemon: &Daemon) -> String {
    format!(
        "limits: {}",
        daemon.datapath().manifest().policy.limits.len()
    )
}
