//! The daemon: keeps the datapath, answers for it, and ends when it has to.

mod answers;
pub mod automatic;
mod bans;
mod candidate;
mod changes;
mod confirm;
mod enforce;
mod feeds;
mod found;
mod guard;
pub mod incidents;
mod memory;
mod named;
mod offenders;
mod pace;
mod refill;
mod reload;
mod service;
mod sieves;
mod startup;
mod state;
pub mod watch;

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use thiserror::Error;
use tokio::signal::unix::{SignalKind, signal};
use tracing::info;

pub use self::{
    answers::look,
    bans::{BanCounts, BansDone, change_pinned, lift_pinned},
    changes::{History, LastReload},
    startup::{Options, StartupError},
};
use self::{changes::Changes, state::StateKeeper};
use crate::{
    control::{
        protocol::{DaemonStatus, GuardStatus, StateStatus},
        sieves::SieveBrief,
    },
    datapath::{Datapath, DatapathError},
};

/// What the daemon answers from.
pub struct Daemon {
    options: Options,
    /// Where the metrics are; `None`: nowhere.
    metrics: Option<SocketAddr>,
    /// Saves what buckets owe; `None`: nobody wants it.
    state: Option<StateKeeper>,
    datapath: RwLock<Datapath>,
    /// What is known of bans beside the kernel's map.
    bans: bans::BanKeeper,
    /// Whom nobody bans.
    guard: guard::Guard,
    /// What became of automatic bans.
    automatic: automatic::Outcomes,
    changes: Mutex<Changes>,
    /// Who asks for a reload.
    reloads: reload::Requests,
    /// Held while the policy is being changed: one change at a time.
    changing: tokio::sync::Mutex<()>,
    /// A change has begun to wait for confirmation.
    unconfirmed: tokio::sync::Notify,
    /// A change waits no more: it was confirmed, or reverted.
    settled: tokio::sync::Notify,
    /// Under which pressure sieves are.
    pressures: sieves::Pressures,
    /// It is to end, and to leave nothing behind.
    detach: tokio::sync::Notify,
}

impl Daemon {
    fn new(
        options: Options,
        metrics: Option<SocketAddr>,
        state: Option<StateKeeper>,
        reloads: reload::Requests,
        datapath: Datapath,
    ) -> Self {
        Self {
            reloads,
            options,
            metrics,
            state,
            datapath: RwLock::new(datapath),
            bans: bans::BanKeeper::default(),
            guard: guard::Guard::default(),
            automatic: automatic::Outcomes::default(),
            changes: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
            unconfirmed: tokio::sync::Notify::new(),
            settled: tokio::sync::Notify::new(),
            pressures: sieves::Pressures::default(),
            detach: tokio::sync::Notify::new(),
        }
    }

    /// What is in force.
    pub fn datapath(&self) -> RwLockReadGuard<'_, Datapath> {
        // Whoever panicked with it has changed nothing by halves: see `Datapath::apply`.
        self.datapath.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the policy has changed since the daemon runs.
    #[must_use]
    pub fn history(&self) -> History {
        self.changes().history()
    }

    /// What became of automatic bans since the daemon runs.
    #[must_use]
    pub const fn automatic_bans(&self) -> &automatic::Outcomes {
        &self.automatic
    }

    /// Whether it is known whom not to ban.
    #[must_use]
    pub fn guard_status(&self) -> GuardStatus {
        self.guard.status()
    }

    /// How saving the state has gone; `None`: nobody wants it.
    #[must_use]
    pub fn state_status(&self) -> Option<StateStatus> {
        self.state.as_ref().map(StateKeeper::status)
    }

    /// How many bans there are, and what was done with them since the daemon runs.
    #[must_use]
    pub fn ban_counts(&self) -> BanCounts {
        self.bans.store().counts()
    }

    /// The sieves at a glance.
    pub fn sieves(&self, datapath: &Datapath) -> Result<Vec<SieveBrief>, DatapathError> {
        sieves::brief(datapath, &self.pressures.measured())
    }

    fn status(&self) -> DaemonStatus {
        DaemonStatus {
            metrics: self.metrics,
            state: self.state_status(),
            reloads: self.history(),
            guard: self.guard.status(),
        }
    }

    fn datapath_mut(&self) -> RwLockWriteGuard<'_, Datapath> {
        self.datapath
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why the daemon ended without being told to.
#[derive(Debug, Error)]
pub enum DaemonError {
    /// It did not get as far as running; it has attached and changed nothing.
    #[error(transparent)]
    Startup(#[from] StartupError),
    /// Nobody confirmed its first policy.
    #[error(
        "the policy was not confirmed in time (limiter confirm): there was none before it, so \
         everything is detached"
    )]
    NotConfirmed,
    /// What is pinned could not be removed.
    #[error(transparent)]
    Detach(#[from] DatapathError),
    /// The system would not deliver signals.
    #[error("cannot wait for signals: {0}")]
    Signals(std::io::Error),
}

/// How the daemon ends.
enum End {
    /// What is pinned stays.
    Stop,
    /// Nothing stays.
    Detach,
    /// Nothing stays, and that is an error.
    NotConfirmed,
}

/// Runs until it is told to end. Then nothing is left attached, but what is pinned.
pub async fn run(options: Options) -> Result<(), DaemonError> {
    memory::prepare();
    // Before anything is attached: a signal must never end the process unseen.
    let mut interrupt = signal(SignalKind::interrupt()).map_err(DaemonError::Signals)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(DaemonError::Signals)?;
    let hang_up = signal(SignalKind::hangup()).map_err(DaemonError::Signals)?;
    let quiet = options.incident_quiet;
    let started = tokio::select! {
        started = startup::start(options) => started?,
        _ = interrupt.recv() => return Ok(()),
        _ = terminate.recv() => return Ok(()),
    };
    let daemon = started.daemon;
    let answer = {
        let daemon = Arc::clone(&daemon);
        move |request| answers::answer(Arc::clone(&daemon), request)
    };
    service::ready(&service_status(&daemon));
    let end = tokio::select! {
        () = started.control.serve(answer) => End::Stop,
        () = daemon.detach.notified() => End::Detach,
        () = confirm::first_is_not_confirmed(&daemon) => End::NotConfirmed,
        _ = interrupt.recv() => End::Stop,
        _ = terminate.recv() => End::Stop,
        never = watch::interfaces::keep(&daemon) => match never {},
        never = reload::whenever_asked(
            &daemon, started.requests, hang_up, started.files, started.feeds,
        ) => match never {},
        never = incidents::watch(&daemon, quiet) => match never {},
        never = service::stay_alive() => match never {},
        never = state::keep(&daemon) => match never {},
        never = automatic::watch(&daemon) => match never {},
        never = bans::sweep(&daemon) => match never {},
        never = sieves::keep(&daemon) => match never {},
    };
    service::stopping();
    state::save(&daemon).await;
    stop(&daemon, &end)
}

/// What the service manager shows.
fn service_status(daemon: &Daemon) -> String {
    format!(
        "limits: {}",
        daemon.datapath().manifest().policy.limits.len()
    )
}

fn stop(daemon: &Daemon, end: &End) -> Result<(), DaemonError> {
    let mut datapath = daemon.datapath_mut();
    let pinned: Option<PathBuf> = datapath.pins().map(|pins| pins.directory().to_owned());
    match (end, pinned) {
        (End::Stop, Some(directory)) => {
            info!(
                "told to end: what is pinned in {} goes on",
                directory.display()
            );
        }
        (End::Stop, None) => info!("told to end: detaching"),
        (End::Detach, _) => info!("told to detach: nothing is left"),
        (End::NotConfirmed, _) => {}
    }
    if !matches!(end, End::Stop) {
        datapath.detach()?;
    }
    match end {
        End::NotConfirmed => Err(DaemonError::NotConfirmed),
        End::Stop | End::Detach => Ok(()),
    }
}
