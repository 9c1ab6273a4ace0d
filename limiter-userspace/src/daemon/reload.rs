//! A configuration is put in force: at the start, and again whenever it is asked for. Nothing
//! changes where anything of it is wrong.

use std::{convert::Infallible, sync::Arc, time::Duration};

use thiserror::Error;
use tokio::{
    signal::unix::Signal,
    task::{JoinError, spawn_blocking},
    time::sleep_until,
};
use tracing::{error, info, warn};

use super::{
    Daemon,
    candidate::{Candidate, CandidateError, Known, Read},
    memory, service, service_status,
    state::Resumed,
};
use crate::{
    control::protocol::Reloaded,
    datapath::{Attachment, DatapathError, LogLevel, Manifest, Previous, wall_clock_now},
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

/// Reads the configuration again and puts it in force.
pub(super) async fn reload(daemon: &Arc<Daemon>) -> Result<Reloaded, ReloadError> {
    let _alone = daemon.changing.lock().await;
    let reloaded = try_reload(daemon).await;
    let error = reloaded.as_ref().err().map(ToString::to_string);
    match (&reloaded, &error) {
        (Ok(reloaded), _) => {
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
        }
        (_, Some(reason)) => {
            for line in reason.lines() {
                error!("not reloaded: {line}");
            }
        }
        (_, None) => {}
    }
    daemon.changes().note(error);
    reloaded
}

async fn try_reload(daemon: &Arc<Daemon>) -> Result<Reloaded, ReloadError> {
    if daemon.changes().deadline().is_some() {
        return Err(ReloadError::Unconfirmed);
    }
    let (known, ours) = {
        let datapath = daemon.datapath();
        (Known::of(datapath.manifest()), datapath.program_ids())
    };
    let options = &daemon.options;
    let path = options.config.clone();
    let read = spawn_blocking(move || Read::load(&path, |_| known)).await??;
    let interfaces = read.interface_names(options)?;
    let candidate = read.check(interfaces, &ours).await?;
    let missing = candidate.looked.missing.clone();
    put_in_force(daemon, candidate, None).await?;
    let datapath = daemon.datapath();
    let manifest = datapath.manifest();
    Ok(Reloaded {
        generation: manifest.generation,
        limits: manifest.policy.limits.len(),
        overrides: manifest.policy.override_count(),
        waiting_for: missing,
        confirm_within_ns: daemon.history().unconfirmed_for_ns,
    })
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

/// Reloads at each SIGHUP.
pub(super) async fn on_signal(daemon: &Arc<Daemon>, mut hang_up: Signal) -> Infallible {
    loop {
        if hang_up.recv().await.is_some() {
            // What comes of it is in the log.
            let _ = reload(daemon).await;
        }
    }
}
