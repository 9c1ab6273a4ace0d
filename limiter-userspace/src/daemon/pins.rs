//! Keeps everything in force pinned: somebody may remove pins, or mount their filesystem anew.

use std::{convert::Infallible, sync::Arc, time::Duration};

use limiter_datapath::kernel::{Datapath, DatapathError};
use tokio::{task::spawn_blocking, time::sleep};
use tracing::{error, warn};

use super::shared::Daemon;

/// How often to look.
const INTERVAL: Duration = Duration::from_secs(10);

/// Looks again and again; logs a failure, and whenever it changes.
pub(super) async fn keep(daemon: &Arc<Daemon>) -> Infallible {
    let mut before = None;
    loop {
        sleep(INTERVAL).await;
        let _alone = daemon.changing.lock().await;
        let trouble = look(daemon).await;
        if let Some(why) = trouble.as_ref().filter(|_| trouble != before) {
            tell(why);
        }
        before = trouble;
    }
}

/// Makes lost pins again, before the policy is changed.
pub(super) async fn renew_alone(daemon: &Arc<Daemon>) {
    if let Some(why) = look(daemon).await {
        tell(&why);
    }
}

/// Makes lost pins again.
///
/// # Errors
///
/// Something is not pinned, and cannot be, which is logged.
pub(super) fn renew(datapath: &mut Datapath) -> Result<(), DatapathError> {
    repair(datapath).inspect_err(|error| tell(&error.to_string()))
}

/// Looks whether all is pinned, while the policy does not change, and makes lost pins again; returns why that
/// cannot be.
async fn look(daemon: &Arc<Daemon>) -> Option<String> {
    let daemon = Arc::clone(daemon);
    let looked = spawn_blocking(move || {
        // Most times all are there, and no reader need wait.
        let is_lost = daemon.datapath().lost_pin().is_some();
        if is_lost {
            repair(&mut daemon.datapath_mut())
        } else {
            Ok(())
        }
    });
    match looked.await {
        Ok(repaired) => repaired.err().map(|error| error.to_string()),
        Err(error) => Some(error.to_string()),
    }
}

fn repair(datapath: &mut Datapath) -> Result<(), DatapathError> {
    if let Some(lost) = datapath.pin_again()? {
        let path = lost.display();
        warn!("the pin {path} was gone: the policy in force is pinned again");
    }
    Ok(())
}

fn tell(why: &str) {
    error!("the policy in force is no longer pinned, and cannot be pinned again: {why}");
}
