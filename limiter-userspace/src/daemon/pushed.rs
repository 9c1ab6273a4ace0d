//! Handles a policy that another node of the fleet pushes: checks it like a reload, refuses it if the guard is
//! against it, puts it in force until it is confirmed in time, then writes it to the configuration.

use std::{ffi::OsStr, sync::Arc, time::Duration};

use limiter_datapath::kernel::wall_clock_now;
use limiter_policy::policy::diff::Diff;
use tokio::task::spawn_blocking;

use super::{
    candidate::Candidate,
    changes::Confirmer,
    confirm::{self, Confirmation},
    error::{PushError, ReloadError},
    feeds::FeedUpdater,
    replacement,
    requests::{Push, PushResult, PushStep},
    reread, service,
    shared::Daemon,
    watch::files::FileWatch,
};
use crate::guard;

/// Takes a step with a pushed policy. If it fails, nothing changes.
pub(super) async fn push(
    daemon: &Arc<Daemon>,
    files: &mut FileWatch,
    feeds: &mut FeedUpdater,
    push: Push,
) -> Result<PushResult, PushError> {
    match push.step {
        PushStep::Check => {
            let _alone = daemon.changing.lock().await;
            let candidate = reread::read(daemon, None, feeds.feeds(), Some(&push)).await?;
            check(daemon, &candidate, &push).await
        }
        PushStep::Take(patience) => {
            let _alone = daemon.changing.lock().await;
            let taken = take(daemon, files, feeds, &push, patience).await;
            let error = taken.as_ref().err().map(ToString::to_string);
            daemon.changes().record(wall_clock_now(), error);
            service::status(daemon);
            taken
        }
        PushStep::Keep => {
            let generation = confirm::confirm_pushed(daemon, &push.file, push.text).await?;
            // It is in force already.
            files.mark_seen();
            Ok(PushResult {
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
    push: &Push,
    patience: Duration,
) -> Result<PushResult, PushError> {
    let candidate = reread::read(daemon, Some(files), feeds.feeds(), Some(push)).await?;
    let PushResult { diff, .. } = check(daemon, &candidate, push).await?;
    let confirmation = Confirmation {
        confirmer: Confirmer::Fleet,
        patience,
    };
    let taken = reread::put(daemon, feeds, candidate, Some(confirmation)).await?;
    Ok(PushResult {
        generation: taken.generation,
        diff,
    })
}

/// Returns the change that a policy would make, unless the guard is against it or the file cannot be written.
async fn check(
    daemon: &Daemon,
    candidate: &Candidate,
    push: &Push,
) -> Result<PushResult, PushError> {
    let (generation, policy) = {
        let datapath = daemon.datapath();
        let manifest = datapath.manifest();
        (manifest.generation, manifest.policy.clone())
    };
    // An operator may have withdrawn the permission, which must not wait for a restart.
    let accepted = candidate.config.fleet.as_ref();
    let accepted = accepted.and_then(|fleet| fleet.accept_policy.as_ref());
    if accepted.map(OsStr::new) != push.file.file_name() {
        return Err(PushError::NotAccepted);
    }
    let new = &candidate.config.policy;
    let against = guard::new_warnings(&policy, new).await;
    let against = against.map_err(|error| PushError::Blind(error.to_string()))?;
    if !against.is_empty() {
        return Err(PushError::Guard(against.join("; ")));
    }
    let file = push.file.clone();
    let checked = spawn_blocking(move || replacement::check(&file)).await;
    let checked = checked.map_err(ReloadError::from)?;
    checked.map_err(|source| PushError::Write {
        file: push.file.clone(),
        source,
    })?;
    let diff = Diff::between(&policy, new);
    Ok(PushResult {
        generation,
        diff: if diff.is_empty() {
            "nothing".to_owned()
        } else {
            diff.to_string()
        },
    })
}
