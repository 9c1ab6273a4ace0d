//! The daemon: keeps the datapath, answers for it, and ends when it has to.

mod answers;
pub mod incidents;
mod offenders;
mod service;
mod startup;
pub mod watch;

use std::sync::Arc;

use jiff::Timestamp;
use thiserror::Error;
use tokio::signal::unix::{SignalKind, signal};
use tracing::info;

pub use self::startup::{Options, StartupError};
use crate::{datapath::Datapath, policy::Policy};

/// What the daemon answers from.
pub struct Daemon {
    /// The policy in force.
    pub policy: Policy,
    /// Counts the policies that were loaded, from 1.
    pub generation: u64,
    /// When the policy was loaded.
    pub loaded_at: Timestamp,
    /// The kernel's side.
    pub datapath: Datapath,
}

/// Why the daemon ended without being told to.
#[derive(Debug, Error)]
pub enum DaemonError {
    /// It did not get as far as running; nothing is attached.
    #[error(transparent)]
    Startup(#[from] StartupError),
    /// There is nothing left to enforce on.
    #[error("every interface has vanished: nothing is left to limit")]
    NoInterfaceLeft,
    /// The system would not deliver signals.
    #[error("cannot wait for signals: {0}")]
    Signals(std::io::Error),
}

/// Runs until SIGINT or SIGTERM; then nothing is left attached.
pub async fn run(options: Options) -> Result<(), DaemonError> {
    // Before anything is attached: a signal must never end the process unseen.
    let mut interrupt = signal(SignalKind::interrupt()).map_err(DaemonError::Signals)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(DaemonError::Signals)?;
    let quiet = options.incident_quiet;
    let started = tokio::select! {
        started = startup::start(options) => started?,
        _ = interrupt.recv() => return Ok(()),
        _ = terminate.recv() => return Ok(()),
    };
    let daemon = &started.daemon;
    let answer = {
        let daemon = Arc::clone(daemon);
        move |request| answers::answer(&daemon, request)
    };
    service::ready(&format!("limits: {}", daemon.policy.limits.len()));
    let ended = tokio::select! {
        () = started.control.serve(answer) => Ok(()),
        () = watch::interfaces::until_no_interface_is_left(daemon) => Err(DaemonError::NoInterfaceLeft),
        _ = interrupt.recv() => {
            info!("interrupted: detaching");
            Ok(())
        }
        _ = terminate.recv() => {
            info!("terminated: detaching");
            Ok(())
        }
        never = service::stay_alive() => match never {},
        never = incidents::watch(daemon, quiet) => match never {},
    };
    service::stopping();
    ended
}
