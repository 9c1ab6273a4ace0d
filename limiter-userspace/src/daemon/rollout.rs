//! Handles a policy that another node of the fleet rolls out: checks it like a reload, refuses it if the guard is
//! against it, puts it in force until it is confirmed in time, then writes it to the configuration.

use std::{ffi::OsStr, sync::Arc, time::Duration};

use limiter_datapath::kernel::wall_clock_now;
use limiter_policy::policy::diff::Diff;
use tokio::task::spawn_blocking;

use super::{
    candidate::Candidate,
    changes::Confirmer,
    confirm::{self, Confirmation},
    error::{ReloadError, StepError},
    feeds::FeedUpdater,
    replacement,
    requests::{RolloutRequest, RolloutResult, RolloutStep},
    reread, service,
    shared::Daemon,
    watch::files::FileWatch,
};
use crate::guard;

/// Takes a step of a rollout. If it fails, nothing changes.
pub(super) async fn step(
    daemon: &Arc<Daemon>,
    files: &mut FileWatch,
    feeds: &mut FeedUpdater,
    rollout: RolloutRequest,
) -> Result<RolloutResult, StepError> {
    match rollout.step {
        RolloutStep::Check => {
            let _alone = daemon.changing.lock().await;
            let candidate = reread::read(daemon, None, feeds.feeds(), Some(&rollout)).await?;
            check(daemon, &candidate, &rollout).await
        }
        RolloutStep::Take(patience) => {
            let _alone = daemon.changing.lock().await;
            let taken = take(daemon, files, feeds, &rollout, patience).await;
            let error = taken.as_ref().err().map(ToString::to_string);
            daemon.changes().record(wall_clock_now(), error);
            service::status(daemon);
            taken
        }
        RolloutStep::Keep => {
            let generation = confirm::confirm_rollout(daemon, &rollout.file, rollout.text).await?;
            // It is in force already.
            files.mark_seen();
            Ok(RolloutResult {
                generation,
                diff: String::new(),
            })
        }
    }
}

async fn take(
    daemon: &Arc<Daemon>,
    files: &mut FileWatch,
    feeds: &mut FeedUpdater,
    rollout: &RolloutRequest,
    patience: Duration,
) -> Result<RolloutResult, StepError> {
    let candidate = reread::read(daemon, Some(files), feeds.feeds(), Some(rollout)).await?;
    let RolloutResult { diff, .. } = check(daemon, &candidate, rollout).await?;
    let confirmation = Confirmation {
        confirmer: Confirmer::Fleet,
        patience,
    };
    let taken = reread::put(daemon, feeds, candidate, Some(confirmation)).await?;
    Ok(RolloutResult {
        generation: taken.generation,
        diff,
    })
}

/// Returns the change that a policy would make, unless the guard is against it or the file cannot be written.
async fn check(
    daemon: &Daemon,
    candidate: &Candidate,
    rollout: &RolloutRequest,
) -> Result<RolloutResult, StepError> {
    let (generation, policy) = {
        let datapath = daemon.datapath();
        let manifest = datapath.manifest();
        (manifest.generation, manifest.policy.clone())
    };
    // An operator may have withdrawn the permission, which must not wait for a restart.
    let accepted = candidate.config.fleet.as_ref();
    let accepted = accepted.and_then(|fleet| fleet.accept_policy.as_ref());
    if accepted.map(OsStr::new) != rollout.file.file_name() {
        return Err(StepError::NotAccepted);
    }
    let new = &candidate.config.policy;
    let against = guard::new_warnings(&policy, new).await;
    let against = against.map_err(|error| StepError::Blind(error.to_string()))?;
    if !against.is_empty() {
        return Err(StepError::Guard(against.join("; ")));
    }
    let file = rollout.file.clone();
    let checked = spawn_blocking(move || replacement::check(&file)).await;
    let checked = checked.map_err(ReloadError::from)?;
    checked.map_err(|source| StepError::Write {
        file: rollout.file.clone(),
        source,
    })?;
    let diff = Diff::between(&policy, new);
    Ok(RolloutResult {
        generation,
        diff: if diff.is_empty() {
            "nothing".to_owned()
        } else {
            diff.to_string()
        },
    })
}
