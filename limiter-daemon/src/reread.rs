//! Reads the configuration again, and puts it in force in place of the one before.

use std::{mem, sync::Arc, time::Instant};

use limiter_datapath::kernel::DatapathError;
use limiter_policy::{
    config::{Config, PushedFile},
    interface,
    lists::Feeds,
};
use limiter_protocol::{ReloadResult, SettingDiff, Status, control::settings};
use tokio::task::spawn_blocking;
use tracing::warn;

use super::{
    candidate::{Candidate, CandidateError, Inheritance, LoadedConfig},
    confirm::Confirmation,
    enforce::put_in_force,
    enforcement::Enforcement,
    error::ReloadError,
    feeds::FeedUpdater,
    requests::RolloutRequest,
    watch::files::FileWatch,
};

/// The enforcement that a reload changes, and the status with which it compares settings.
#[derive(Clone, Copy)]
pub(super) struct ReloadContext<'d> {
    pub(super) enforcement: &'d Arc<Enforcement>,
    pub(super) status: &'d dyn Fn() -> Result<Status, DatapathError>,
}

/// Reads the configuration again, and puts it in force.
pub(super) async fn reread(
    context: ReloadContext<'_>,
    files: &mut FileWatch,
    feeds: &mut FeedUpdater,
) -> Result<ReloadResult, ReloadError> {
    let enforcement = context.enforcement;
    let candidate = read(enforcement, Some(files), feeds.feeds(), None).await?;
    let confirmation = Confirmation::of(&enforcement.options);
    put(context, feeds, candidate, confirmation).await
}

/// Reads the configuration again, with the file of a rollout if there is one, while no change waits to be confirmed. Has its
/// `files` watched from then on.
pub(super) async fn read(
    enforcement: &Enforcement,
    files: Option<&mut FileWatch>,
    feeds: &Feeds,
    rollout: Option<&RolloutRequest>,
) -> Result<Candidate, ReloadError> {
    if enforcement.changes().deadline().is_some() {
        return Err(ReloadError::Unconfirmed);
    }
    let (inherited, ours) = {
        let datapath = enforcement.datapath();
        (Inheritance::of(datapath.manifest()), datapath.program_ids())
    };
    let options = &enforcement.options;
    let path = options.config.clone();
    let old = feeds.clone();
    let pushed = rollout.map(|rollout| (rollout.file.clone(), Arc::clone(&rollout.text)));
    let read = spawn_blocking(move || {
        let pushed = pushed.as_ref();
        let pushed = pushed.map(|(path, text)| PushedFile { path, text });
        LoadedConfig::load(&path, &old, pushed, |_| inherited)
    });
    let read = read.await?;
    match (&read, files) {
        (Ok(read), Some(files)) => files.replace(read.files().iter().cloned()),
        // A broken configuration is watched for its repair.
        (Err(CandidateError::Config(errors)), Some(files)) => {
            files.replace(errors.files().iter().cloned());
        }
        _ => {}
    }
    let read = read?;
    let interfaces = read.interface_names(options)?;
    Ok(read.check(interfaces, &ours).await?)
}

/// Puts a newly read configuration in force.
pub(super) async fn put(
    context: ReloadContext<'_>,
    feeds: &mut FeedUpdater,
    mut candidate: Candidate,
    confirmation: Option<Confirmation>,
) -> Result<ReloadResult, ReloadError> {
    let enforcement = context.enforcement;
    let missing = interface::names(&candidate.lookup.missing).map(str::to_owned);
    let waiting_for = missing.collect();
    let after_restart = after_restart(context, &candidate.config)?;
    let (read, begun_at) = (mem::take(&mut candidate.feeds), candidate.begun_at);
    let change = Box::pin(put_in_force(enforcement, candidate, None, confirmation));
    let begun_anew = change.await?;
    feeds.replace(enforcement, read, begun_at);
    let datapath = enforcement.datapath();
    let manifest = datapath.manifest();
    Ok(ReloadResult {
        generation: manifest.generation,
        limits: manifest.policy.limits.len(),
        overrides: manifest.policy.override_count(),
        begun_anew: begun_anew.limits,
        known_sources: begun_anew.known_sources,
        waiting_for,
        after_restart,
        confirm_within_ns: (enforcement.changes()).unconfirmed_for_ns(Instant::now()),
    })
}

/// Returns changed settings that need a restart, except settings that options of `limiter run` override; logs them.
fn after_restart(
    context: ReloadContext<'_>,
    config: &Config,
) -> Result<Vec<SettingDiff>, ReloadError> {
    let options = &context.enforcement.options;
    let mut settings = settings::restart_diff(config, &(context.status)()?);
    settings.retain(|found| match found.setting.as_str() {
        settings::MODE => options.mode.is_none(),
        settings::METRICS => options.metrics.is_none(),
        _ => true,
    });
    for found in &settings {
        let SettingDiff { setting, old, new } = found;
        warn!(setting, "only a restart changes `{setting}`: {old} → {new}");
    }
    Ok(settings)
}
