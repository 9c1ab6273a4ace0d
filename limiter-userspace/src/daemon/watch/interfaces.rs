//! Watches the interfaces: they may vanish while the daemon runs.

use std::time::Duration;

use tracing::error;

use crate::daemon::Daemon;

/// How often the interfaces are looked at: one system call each.
const INTERVAL: Duration = Duration::from_millis(500);

/// Ends when the last interface has vanished; says so of each that does.
pub(in crate::daemon) async fn until_no_interface_is_left(daemon: &Daemon) {
    let mut left: Vec<_> = daemon.datapath.attachments().iter().collect();
    let mut ticks = tokio::time::interval(INTERVAL);
    while !left.is_empty() {
        ticks.tick().await;
        left.retain(|attachment| {
            let exists = attachment.exists();
            if !exists {
                let interface = attachment.interface.as_str();
                error!(interface, "{interface} has vanished: it is limited no more");
            }
            exists
        });
    }
}
