//! Reads the configuration again whenever asked. If any of it is wrong, nothing changes.

use std::{convert::Infallible, mem, sync::Arc};

use limiter_datapath::kernel::{DatapathError, wall_clock_now};
use limiter_policy::config::Config;
use tokio::{signal::unix::Signal, sync::mpsc, task::spawn_blocking};
use tracing::{error, info, warn};

use super::{
    answers,
    candidate::{CandidateError, Inherited, Read},
    enforce::put_in_force,
    error::ReloadError,
    feeds::FeedKeeper,
    requests::PolicyRequest,
    service,
    shared::Daemon,
    watch::files::FileWatch,
};
use crate::{
    control::settings,
    protocol::{Reloaded, SettingDiff},
};

/// Reloads on a request, on SIGHUP, and when one of the configuration's files changes. In between,
/// keeps lists up to date with their feeds.
pub(super) async fn whenever_asked(
    daemon: &Arc<Daemon>,
    mut requests: mpsc::Receiver<PolicyRequest>,
    mut hang_up: Signal,
    mut files: FileWatch,
    mut feeds: FeedKeeper,
) -> Infallible {
    loop {
        let reply = tokio::select! {
            Some(request) = requests.recv() => match request {
                PolicyRequest::Reload(reply) => Some(reply),
                PolicyRequest::Accept(accept, reply) => {
                    // The client may have gone; the log says it too.
                    let _ = reply.send(feeds.accept(daemon, accept).await);
                    continue;
                }
            },
            _ = hang_up.recv() => None,
            _ = files.changed() => None,
            () = feeds.due(daemon) => {
                feeds.renew(daemon).await;
                continue;
            }
        };
        // A later change may miss the reading below, so it must count as new.
        files.accept();
        let reloaded = reload(daemon, &mut files, &mut feeds).await;
        if let Some(reply) = reply {
            // The client may have gone; the log says it too.
            let _ = reply.send(reloaded);
        }
    }
}

/// Reads the configuration again, puts it in force, and logs how that went.
async fn reload(
    daemon: &Arc<Daemon>,
    files: &mut FileWatch,
    feeds: &mut FeedKeeper,
) -> Result<Reloaded, ReloadError> {
    let _alone = daemon.changing.lock().await;
    let reloaded = match try_reload(daemon, files, feeds).await {
        Ok(reloaded) => {
            info!(
                generation = reloaded.generation,
                limits = reloaded.limits,
                overrides = reloaded.overrides,
                "reloaded: policy {} is in force (limits: {}, overrides: {})",
                reloaded.generation,
                reloaded.limits,
                reloaded.overrides,
            );
            service::status(daemon);
            Ok(reloaded)
        }
        Err(error) => {
            for line in error.to_string().lines() {
                error!("not reloaded: {line}");
            }
            Err(error)
        }
    };
    let error = reloaded.as_ref().err().map(ToString::to_string);
    daemon.changes().note(wall_clock_now(), error);
    reloaded
}

async fn try_reload(
    daemon: &Arc<Daemon>,
    files: &mut FileWatch,
    feeds: &mut FeedKeeper,
) -> Result<Reloaded, ReloadError> {
    if daemon.changes().deadline().is_some() {
        return Err(ReloadError::Unconfirmed);
    }
    let (inherited, ours) = {
        let datapath = daemon.datapath();
        (Inherited::of(datapath.manifest()), datapath.program_ids())
    };
    let options = &daemon.options;
    let path = options.config.clone();
    let old = feeds.feeds().clone();
    let read = spawn_blocking(move || Read::load(&path, &old, |_| inherited)).await?;
    match &read {
        Ok(read) => files.replace(read.files().iter().cloned()),
        // A broken configuration is watched for its repair.
        Err(CandidateError::Config(errors)) => files.replace(errors.files().iter().cloned()),
        Err(_) => {}
    }
    let read = read?;
    let interfaces = read.interface_names(options)?;
    let mut candidate = read.check(interfaces, &ours).await?;
    let missing = candidate.lookup.missing.clone();
    let after_restart = after_restart(daemon, &candidate.config)?;
    let (read, begun_at) = (mem::take(&mut candidate.feeds), candidate.begun_at);
    let begun_anew = put_in_force(daemon, candidate, None).await?;
    feeds.replace(daemon, read, begun_at);
    let datapath = daemon.datapath();
    let manifest = datapath.manifest();
    Ok(Reloaded {
        generation: manifest.generation,
        limits: manifest.policy.limits.len(),
        overrides: manifest.policy.override_count(),
        begun_anew: begun_anew.limits,
        known_sources: begun_anew.known_sources,
        waiting_for: missing,
        after_restart,
        confirm_within_ns: daemon.history().unconfirmed_for_ns,
    })
}

/// Returns the settings that only a restart changes, except those that options of `limiter run`
/// override; logs them.
fn after_restart(daemon: &Daemon, config: &Config) -> Result<Vec<SettingDiff>, DatapathError> {
    let options = &daemon.options;
    let mut settings = settings::restarted(config, &answers::status_of(daemon)?);
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
