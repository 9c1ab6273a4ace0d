//! Policies that are to be confirmed, or else reverted.

use std::time::Duration;

use thiserror::Error;
use tokio::time::{Instant, sleep_until};
use tracing::{error, info, warn};

use super::{Daemon, enforce::tell_begun_anew, service, service_status};
use crate::{
    datapath::{DatapathError, Previous},
    policy::diff,
};

/// No policy was confirmed.
#[derive(Debug, Error)]
pub(super) enum ConfirmError {
    /// None waits for it.
    #[error("no policy waits to be confirmed")]
    Nothing,
    /// What was before could not be removed.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
}

/// From now on the policy in force waits to be confirmed.
pub(super) fn ask(daemon: &Daemon, previous: Previous, patience: Duration) {
    warn!(
        "the policy is reverted in {} s, unless it is confirmed: limiter confirm",
        patience.as_secs_f64()
    );
    daemon.changes().await_confirmation(previous, patience);
    daemon.unconfirmed.notify_one();
}

/// The policy in force stays; returns its number.
pub(super) async fn confirm(daemon: &Daemon) -> Result<u64, ConfirmError> {
    let _alone = daemon.changing.lock().await;
    let previous = daemon.changes().take_unconfirmed();
    let previous = previous.ok_or(ConfirmError::Nothing)?;
    daemon.settled.notify_one();
    let mut datapath = daemon.datapath_mut();
    datapath.settle(previous)?;
    let generation = datapath.manifest().generation;
    info!(generation, "policy {generation} is confirmed");
    Ok(generation)
}

/// Reverts what is not confirmed in time. Ends when that was the first policy.
pub(super) async fn first_is_not_confirmed(daemon: &Daemon) {
    loop {
        let deadline = daemon.changes().deadline();
        match deadline {
            None => daemon.unconfirmed.notified().await,
            Some(deadline) => sleep_until(deadline).await,
        }
        let _alone = daemon.changing.lock().await;
        let previous = {
            let mut changes = daemon.changes();
            match changes.deadline() {
                Some(deadline) if deadline <= Instant::now() => changes.take_unconfirmed(),
                _ => None,
            }
        };
        let Some(previous) = previous else {
            continue;
        };
        let before = previous.manifest().generation;
        if before == 0 {
            return;
        }
        let begun_anew = {
            let datapath = daemon.datapath();
            diff::begun_anew(&datapath.manifest().policy, &previous.manifest().policy)
        };
        let reverted = daemon.datapath_mut().revert(previous);
        match reverted {
            Ok(()) => {
                tell_begun_anew(&begun_anew);
                daemon.pressures.policy_changed();
                let told = format!("not confirmed in time: policy {before} is in force again");
                warn!(generation = before, "{told}");
                daemon.changes().note(Some(told));
            }
            Err(error) => error!("the policy was not confirmed and cannot be reverted: {error}"),
        }
        daemon.settled.notify_one();
        service::status(&service_status(daemon));
    }
}
