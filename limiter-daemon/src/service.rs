//! Reports to the service manager by sd_notify(3), if there is one and it asks for reports.

use std::{convert::Infallible, time::Duration};

use sd_notify::NotifyState::{self, Ready, Status, Stopping, Watchdog};
use tracing::{error, warn};

use super::{shared_datapath::SharedDatapath, watchdog::ThreadWatchdog};

/// How often to check the threads if no service manager asks for it.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Reports that every interface that exists is attached, and every socket listens.
pub(super) fn ready(datapath: &SharedDatapath) {
    notify_manager(&[Ready, Status(&text(datapath))]);
}

/// Reports a change of the policy in force.
pub(super) fn status(datapath: &SharedDatapath) {
    notify_manager(&[Status(&text(datapath))]);
}

/// Reports that shutdown has begun.
pub(super) fn stopping() {
    notify_manager(&[Stopping]);
}

/// Feeds the service manager's watchdog, forever, while all threads live. Await it beside the daemon's work, so that
/// it stops if that hangs. Hanging threads are logged in any case.
pub(super) async fn stay_alive(watchdog: &ThreadWatchdog) -> Infallible {
    let patience = sd_notify::watchdog_enabled();
    // Twice in that time, as sd_watchdog_enabled(3) advises.
    let mut ticks = tokio::time::interval(patience.map_or(CHECK_INTERVAL, |patience| patience / 2));
    let mut reported = Vec::new();
    loop {
        ticks.tick().await;
        let late = watchdog.late();
        for task in late.iter().filter(|task| !reported.contains(*task)) {
            error!("the thread that {task} hangs");
        }
        if late.is_empty() && patience.is_some() {
            notify_manager(&[Watchdog]);
        }
        reported = late;
    }
}

fn notify_manager(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        warn!("cannot tell the service manager: {error}");
    }
}

/// The status line in the service manager.
fn text(datapath: &SharedDatapath) -> String {
    format!("limits: {}", datapath.read().manifest().policy.limits.len())
}
