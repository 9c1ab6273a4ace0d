//! A configuration is put in force: at the start, and again whenever it is asked for. Nothing
//! changes where anything of it is wrong.

use std::{convert::Infallible, sync::Arc, time::Duration};

use thiserror::Error;
use tokio::{
    signal::unix::Signal,
    sync::{mpsc, oneshot},
    task::{JoinError, spawn_blocking},
    time::sleep_until,
};
use tracing::{error, info, warn};

use super::{
    Daemon, answers,
    candidate::{Candidate, CandidateError, Known, Read},
    memory, service, service_status,
    state::Resumed,
    watch::files::FileWatch,
};
use crate::{
    config::Config,
    control::{
        protocol::Reloaded,
        settings::{self, SettingDiff},
    },
    datapath::{Attachment, DatapathError, LogLevel, Manifest, Previous, Restored, wall_clock_now},
    guard,
};

/// The policy in force stays as it is.
#[derive(Debug, Error)]
pub(super) enum ReloadError {
    /// The new one cannot be put in force.
    #[error(transparent)]
    Candidate(#[from] CandidateError),
    /// The kernel refused.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
    /// The one before waits to be confirmed.
    #[error(
        "the policy in force waits to be confirmed: `limiter confirm` first, or wait until it is \
         reverted"
    )]
    Unconfirmed,
    /// It came to no end.
    #[error("putting the policy in force failed: {0}")]
    Task(#[from] JoinError),
}

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

/// Where a reload is asked for.
#[derive(Clone)]
pub(super) struct Requests(mpsc::Sender<Reply>);

/// Where what came of it is told.
pub(super) type Reply = oneshot::Sender<Result<Reloaded, String>>;

impl Requests {
    /// And where such requests arrive.
    pub(super) fn new() -> (Self, mpsc::Receiver<Reply>) {
        let (requests, arriving) = mpsc::channel(1);
        (Self(requests), arriving)
    }

    /// Asks, and waits for what comes of it.
    pub(super) async fn ask(&self) -> Result<Reloaded, String> {
        let (reply, answer) = oneshot::channel();
        let ending = || "the daemon is about to end".to_owned();
        self.0.send(reply).await.map_err(|_| ending())?;
        answer.await.map_err(|_| ending())?
    }
}

/// Reloads whenever it is asked to: by a request, by SIGHUP, by a change of one of the
/// configuration's files.
pub(super) async fn whenever_asked(
    daemon: &Arc<Daemon>,
    mut requests: mpsc::Receiver<Reply>,
    mut hang_up: Signal,
    mut files: FileWatch,
) -> Infallible {
    loop {
        let reply = tokio::select! {
            Some(reply) = requests.recv() => Some(reply),
            _ = hang_up.recv() => None,
            () = files.changed() => None,
        };
        // What is changed from now on may not be read any more.
        files.accept();
        let reloaded = reload(daemon, &mut files).await;
        if let Some(reply) = reply {
            // Whoever has asked may have gone; the log says it too.
            let _ = reply.send(reloaded);
        }
    }
}

/// Reads the configuration again and puts it in force. Of an error, the lines.
async fn reload(daemon: &Arc<Daemon>, files: &mut FileWatch) -> Result<Reloaded, String> {
    let _alone = daemon.changing.lock().await;
    let reloaded = match try_reload(daemon, files).await {
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
            service::status(&service_status(daemon));
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

async fn try_reload(daemon: &Arc<Daemon>, files: &mut FileWatch) -> Result<Reloaded, ReloadError> {
    if daemon.changes().deadline().is_some() {
        return Err(ReloadError::Unconfirmed);
    }
    let (known, ours) = {
        let datapath = daemon.datapath();
        (Known::of(datapath.manifest()), datapath.program_ids())
    };
    let options = &daemon.options;
    let path = options.config.clone();
    let read = spawn_blocking(move || Read::load(&path, |_| known)).await?;
    match &read {
        Ok(read) => files.replace(read.files().iter().cloned()),
        // One that is broken is watched for its repair.
        Err(CandidateError::Config(errors)) => files.replace(errors.files().iter().cloned()),
        Err(_) => {}
    }
    let read = read?;
    let interfaces = read.interface_names(options)?;
    let candidate = read.check(interfaces, &ours).await?;
    let missing = candidate.looked.missing.clone();
    let after_restart = after_restart(daemon, &candidate.config)?;
    put_in_force(daemon, candidate, None).await?;
    let datapath = daemon.datapath();
    let manifest = datapath.manifest();
    Ok(Reloaded {
        generation: manifest.generation,
        limits: manifest.policy.limits.len(),
        overrides: manifest.policy.override_count(),
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

/// Puts a configuration in force, with buckets that owe what was resumed. If it is to be
/// confirmed, it can be reverted from then on.
pub(super) async fn put_in_force(
    daemon: &Arc<Daemon>,
    candidate: Candidate,
    resumed: Option<Resumed>,
) -> Result<(), ReloadError> {
    for name in &candidate.looked.missing {
        warn!(
            interface = name.as_str(),
            "{name} is not there: it is limited as soon as it appears"
        );
    }
    guard::warn_of(&candidate.config.policy).await;
    let to_apply = Arc::clone(daemon);
    // The kernel's verifier takes its time; packets and questions do not wait for it.
    let previous = spawn_blocking(move || apply(&to_apply, candidate, resumed)).await??;
    let datapath = daemon.datapath();
    let attachments = datapath.attachments().iter();
    for attachment in attachments.filter(|found| previous.lacked(found)) {
        announce(attachment);
    }
    drop(datapath);
    if let Some(carried) = previous.carried() {
        tell_carried(carried);
    }
    match daemon.options.confirm {
        Some(patience) => {
            ask_to_confirm(patience);
            daemon.changes().await_confirmation(previous, patience);
            daemon.unconfirmed.notify_one();
        }
        None => daemon.datapath_mut().settle(previous)?,
    }
    memory::give_back();
    Ok(())
}

fn apply(
    daemon: &Daemon,
    candidate: Candidate,
    resumed: Option<Resumed>,
) -> Result<Previous, DatapathError> {
    let Candidate {
        config,
        names,
        policy,
        interfaces,
        looked,
    } = candidate;
    let log = if daemon.options.log_datapath {
        LogLevel::Verdicts
    } else {
        LogLevel::Off
    };
    let prepared = {
        let datapath = daemon.datapath();
        let manifest = Manifest {
            generation: datapath.manifest().generation + 1,
            state: datapath.manifest().state,
            loaded_at: wall_clock_now(),
            interfaces,
            mode: daemon.options.mode.unwrap_or(config.mode),
            settings: datapath
                .settings()
                .with(config.buckets, config.offenders, log),
            policy: config.policy,
            names,
            units: policy.units.clone(),
        };
        datapath.prepare(manifest, policy, &looked.found)?
    };
    if let Some(resumed) = resumed {
        resumed.restore(&prepared)?;
    }
    daemon.datapath_mut().apply(prepared)
}

pub(super) fn announce(attachment: &Attachment) {
    let (interface, mode) = (attachment.interface.as_str(), attachment.mode.name());
    match attachment.fell_back.as_deref() {
        None => info!(interface, mode, "attached to {interface} in {mode} mode"),
        Some(reason) => warn!(
            interface,
            mode,
            reason,
            "attached to {interface} in {mode} mode, which is several times slower: the driver \
             refused native mode ({reason})"
        ),
    }
}

fn tell_carried(carried: Restored) {
    let Restored { restored, lost, .. } = carried;
    info!(
        restored,
        lost, "the buckets are new ones: {restored} owe what they owed"
    );
    if lost > 0 {
        warn!(
            lost,
            "{lost} buckets that were in debt begin full: `buckets` has changed, and has no room \
             for them or no way to tell whose they are"
        );
    }
}

fn ask_to_confirm(patience: Duration) {
    warn!(
        "the policy is reverted in {} s, unless it is confirmed: limiter confirm",
        patience.as_secs_f64()
    );
}

/// The policy in force stays; returns its number.
pub(super) async fn confirm(daemon: &Daemon) -> Result<u64, ConfirmError> {
    let _alone = daemon.changing.lock().await;
    let previous = daemon.changes().take_unconfirmed();
    let previous = previous.ok_or(ConfirmError::Nothing)?;
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
                Some(deadline) if deadline <= tokio::time::Instant::now() => {
                    changes.take_unconfirmed()
                }
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
        match daemon.datapath_mut().revert(previous) {
            Ok(()) => {
                let told = format!("not confirmed in time: policy {before} is in force again");
                warn!(generation = before, "{told}");
                daemon.changes().note(Some(told));
            }
            Err(error) => error!("the policy was not confirmed and cannot be reverted: {error}"),
        }
        service::status(&service_status(daemon));
    }
}
