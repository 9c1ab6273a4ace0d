//! Keeps everything in force pinned: pins may be removed, or their filesystem mounted anew.

use std::{convert::Infallible, sync::Arc, time::Duration};

use limiter_datapath::kernel::{Datapath, DatapathError};
use tokio::{task::spawn_blocking, time::sleep};
use tracing::{error, warn};

use super::enforcement::Enforcement;

/// Interval of the checks.
const INTERVAL: Duration = Duration::from_secs(10);

/// Checks the pins, forever; logs a failure, and whenever it changes.
pub(super) async fn maintain(enforcement: &Arc<Enforcement>) -> Infallible {
    let mut before = None;
    loop {
        sleep(INTERVAL).await;
        let _alone = enforcement.changing.lock().await;
        let warning = check(enforcement).await;
        if let Some(why) = warning.as_ref().filter(|_| warning != before) {
            log_failure(why);
        }
        before = warning;
    }
}

/// Restores lost pins, before the policy is changed.
pub(super) async fn renew_alone(enforcement: &Arc<Enforcement>) {
    if let Some(why) = check(enforcement).await {
        log_failure(&why);
    }
}

/// Restores lost pins.
///
/// # Errors
///
/// Something is not pinned, and cannot be, which is logged.
pub(super) fn renew(datapath: &mut Datapath) -> Result<(), DatapathError> {
    repair(datapath).inspect_err(|error| log_failure(&error.to_string()))
}

/// Checks the pins, under the lock on policy changes, and restores lost ones; returns the error if that fails.
async fn check(enforcement: &Arc<Enforcement>) -> Option<String> {
    let enforcement = Arc::clone(enforcement);
    let polled = spawn_blocking(move || {
        // Usually no pin is lost, and readers need not wait.
        let is_lost = enforcement.datapath().lost_pin().is_some();
        if is_lost {
            repair(&mut enforcement.datapath_mut())
        } else {
            Ok(())
        }
    });
    match polled.await {
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

fn log_failure(why: &str) {
    error!("the policy in force is no longer pinned, and cannot be pinned again: {why}");
}
