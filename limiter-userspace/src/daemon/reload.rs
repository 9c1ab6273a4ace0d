//! The configuration is read again whenever it is asked for. Nothing changes where anything of it
//! is wrong.

use std::{convert::Infallible, mem, sync::Arc};

use limiter_datapath::kernel::DatapathError;
use limiter_policy::config::Config;
use tokio::{signal::unix::Signal, sync::mpsc, task::spawn_blocking};
use tracing::{error, info, warn};

use super::{
    answers,
    candidate::{CandidateError, Known, Read},
    enforce::put_in_force,
    error::ReloadError,
    feeds::FeedKeeper,
    requests::Asked,
    service,
    shared::Daemon,
    watch::files::FileWatch,
};
use crate::{
    control::settings,
    protocol::{Reloaded, SettingDiff},
};

/// Reloads whenever it is asked to: by a request, by SIGHUP, by a change of one of the
/// configuration's files. In between, lists are kept as their feeds are.
pub(super) async fn whenever_asked(
    daemon: &Arc<Daemon>,
    mut requests: mpsc::Receiver<Asked>,
    mut hang_up: Signal,
    mut files: FileWatch,
    mut feeds: FeedKeeper,
) -> Infallible {
    loop {
        let reply = tokio::select! {
            Some(asked) = requests.recv() => match asked {
                Asked::Reload(reply) => Some(reply),
                Asked::Accept(accept, reply) => {
                    // Whoever has asked may have gone; the log says it too.
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
        // What is changed from now on may not be read any more.
        files.accept();
        let reloaded = reload(daemon, &mut files, &mut feeds).await;
        if let Some(reply) = reply {
            // Whoever has asked may have gone; the log says it too.
            let _ = reply.send(reloaded);
        }
    }
}

/// Reads the configuration again and puts it in force. Of an error, the lines.
async fn reload(
    daemon: &Arc<Daemon>,
    files: &mut FileWatch,
    feeds: &mut FeedKeeper,
) -> Result<Reloaded, String> {
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
            let error = error.to_string();
            for line in error.lines() {
                error!("not reloaded: {line}");
            }
            Err(error)
        }
    };
    daemon.changes().note(reloaded.as_ref().err().cloned());
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
    let (known, ours) = {
        let datapath = daemon.datapath();
        (Known::of(datapath.manifest()), datapath.program_ids())
    };
    let options = &daemon.options;
    let path = options.config.clone();
    let old = feeds.feeds().clone();
    let read = spawn_blocking(move || Read::load(&path, &old, |_| known)).await?;
    match &read {
        Ok(read) => files.replace(read.files().iter().cloned()),
        // One that is broken is watched for its repair.
        Err(CandidateError::Config(errors)) => files.replace(errors.files().iter().cloned()),
        Err(_) => {}
    }
    let read = read?;
    let interfaces = read.interface_names(options)?;
    let mut candidate = read.check(interfaces, &ours).await?;
    let missing = candidate.looked.missing.clone();
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
        begun_anew,
        waiting_for: missing,
        after_restart,
        confirm_within_ns: daemon.history().unconfirmed_for_ns,
    })
}

/// What of a configuration takes a restart, but for what options of `limiter run` say
/// otherwise; told in the log.
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
