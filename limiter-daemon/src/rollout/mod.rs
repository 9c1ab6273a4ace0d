//! Handles a policy that another node of the fleet rolls out: checks it like a reload, refuses it if the guard is
//! against it, puts it in force until it is confirmed in time, then writes it to the configuration.

pub(super) mod memory;

use std::ffi::OsStr;

use limiter_datapath::kernel::wall_clock_now;
use limiter_fleet::rollout::{NodePart, NodeState, Work};
use limiter_host::guard;
use limiter_policy::policy::diff::Diff;
use tokio::task::spawn_blocking;
use tracing::info;

use super::{
    candidate::Candidate,
    changes::Confirmer,
    confirm::{self, Confirmation},
    enforcement::Enforcement,
    error::{ReloadError, StepError},
    feeds::FeedUpdater,
    replacement,
    requests::RolloutRequest,
    reread::{self, ReloadContext},
    service,
    watch::files::FileWatch,
};

/// Does a node's work for a rollout; returns the node's part thereafter. If it fails, nothing changes.
pub(super) async fn work(
    context: ReloadContext<'_>,
    files: &mut FileWatch,
    feeds: &mut FeedUpdater,
    request: RolloutRequest,
) -> Result<NodePart, StepError> {
    let enforcement = context.enforcement;
    match request.work {
        Work::Check => {
            let _alone = enforcement.changing.lock().await;
            let candidate = reread::read(enforcement, None, feeds.feeds(), Some(&request)).await?;
            let diff = check(enforcement, &candidate, &request).await?;
            Ok(NodePart::would(&diff))
        }
        Work::Take(patience) => {
            let _alone = enforcement.changing.lock().await;
            let confirmation = Confirmation {
                confirmer: Confirmer::Fleet,
                patience,
            };
            let taken = take(context, files, feeds, &request, confirmation).await;
            let error = taken.as_ref().err().map(ToString::to_string);
            enforcement.changes().record(wall_clock_now(), error);
            service::status(&enforcement.datapath);
            let (generation, leader) = (taken?, request.rollout.node);
            info!(
                generation,
                "policy {generation} is in force, which node {leader} pushes: it is reverted unless the fleet \
                 confirms it"
            );
            Ok(NodePart::in_force(NodeState::Holds, generation))
        }
        Work::Keep => {
            let generation =
                confirm::confirm_rollout(enforcement, &request.file, request.text).await?;
            // It is in force already.
            files.mark_seen();
            Ok(NodePart::in_force(NodeState::Kept, generation))
        }
    }
}

/// Enforces a policy until it is confirmed in time; returns its number.
async fn take(
    context: ReloadContext<'_>,
    files: &mut FileWatch,
    feeds: &mut FeedUpdater,
    request: &RolloutRequest,
    confirmation: Confirmation,
) -> Result<u64, StepError> {
    let (file, rollout) = (request.file.clone(), request.rollout.clone());
    let written = spawn_blocking(move || memory::write(&file, &rollout)).await;
    written
        .map_err(ReloadError::from)?
        .map_err(StepError::Memory)?;
    let enforcement = context.enforcement;
    let candidate = reread::read(enforcement, Some(files), feeds.feeds(), Some(request)).await?;
    check(enforcement, &candidate, request).await?;
    let taken = reread::put(context, feeds, candidate, Some(confirmation)).await?;
    Ok(taken.generation)
}

/// Returns the change that a policy would make, unless the guard is against it or the file cannot be written.
async fn check(
    enforcement: &Enforcement,
    candidate: &Candidate,
    request: &RolloutRequest,
) -> Result<String, StepError> {
    // An operator may have withdrawn the permission, which must not wait for a restart.
    let accepted = candidate.config.fleet.as_ref();
    let accepted = accepted.and_then(|fleet| fleet.accept_policy.as_ref());
    if accepted.map(OsStr::new) != request.file.file_name() {
        return Err(StepError::NotAccepted);
    }
    let policy = enforcement.datapath().manifest().policy.clone();
    let new = &candidate.config.policy;
    let against = guard::new_warnings(&policy, new).await;
    let against = against.map_err(|error| StepError::Blind(error.to_string()))?;
    if !against.is_empty() {
        return Err(StepError::Guard(against.join("; ")));
    }
    let file = request.file.clone();
    let checked = spawn_blocking(move || replacement::check(&file)).await;
    let checked = checked.map_err(ReloadError::from)?;
    checked.map_err(|source| StepError::Write {
        file: request.file.clone(),
        source,
    })?;
    let diff = Diff::between(&policy, new);
    Ok(if diff.is_empty() {
        "nothing".to_owned()
    } else {
        diff.to_string()
    })
}
