//! The daemon: keeps the datapath, answers for it, and ends when it has to.

mod answers;
pub mod automatic;
mod bans;
mod candidate;
mod changes;
mod confirm;
mod enforce;
mod exporter;
mod feeds;
mod found;
mod guard;
pub mod incidents;
mod memory;
mod named;
mod offenders;
mod pace;
pub mod pulse;
mod refill;
mod reload;
mod service;
mod sieves;
mod startup;
mod state;
pub mod watch;

use std::{
    net::SocketAddr,
    ops::{Deref, DerefMut},
    path::PathBuf,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
    },
    thread,
    time::Duration,
};

use limiter_datapath::kernel::{Datapath, DatapathError, possible_cpus};
use thiserror::Error;
use tokio::{
    signal::unix::{SignalKind, signal},
    task::spawn_blocking,
};
use tracing::info;

pub use self::{
    answers::look,
    bans::{BanCounts, BansDone, change_pinned, lift_pinned},
    exporter::{BindMetrics, MetricsListener},
    startup::{Options, StartupError},
};
use self::{changes::Changes, pulse::Pulses, state::StateKeeper};
use crate::{
    logging,
    protocol::{DaemonStatus, GuardStatus, History, StateStatus, sieves::SieveBrief},
};

/// How many threads for what blocks are there from the start; there may be more.
const BLOCKING: usize = 4;

/// Longer than any daemon runs.
const FOREVER: Duration = Duration::from_hours(24 * 365 * 100);

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
    /// Knows the addresses that are not to be banned.
    guard: guard::Guard,
    /// What became of automatic bans.
    automatic: automatic::Outcomes,
    changes: Mutex<Changes>,
    /// Who asks for a reload.
    reloads: reload::Requests,
    /// Held while the policy is being changed: one change at a time.
    changing: tokio::sync::Mutex<()>,
    /// A change has begun to wait for confirmation, or nobody has to see to that any more.
    unconfirmed: Condvar,
    /// The first policy was not confirmed: it is to end.
    not_confirmed: tokio::sync::Notify,
    /// A change waits no more: it was confirmed, or reverted.
    settled: tokio::sync::Notify,
    /// Under which pressure sieves are.
    pressures: Arc<sieves::Pressures>,
    /// Which of the threads live.
    pulses: Arc<Pulses>,
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
            unconfirmed: Condvar::new(),
            not_confirmed: tokio::sync::Notify::new(),
            settled: tokio::sync::Notify::new(),
            pressures: Arc::default(),
            pulses: Arc::default(),
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

    /// Where the threads beside this one give signs of life.
    #[must_use]
    pub fn pulses(&self) -> &Pulses {
        &self.pulses
    }

    /// What is in force, to be changed.
    fn datapath_mut(&self) -> ChangingDatapath<'_> {
        ChangingDatapath {
            datapath: self
                .datapath
                .write()
                .unwrap_or_else(PoisonError::into_inner),
            pressures: &self.pressures,
        }
    }

    fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The datapath while it is changed. Whatever is in force then, its pressures are measured before
/// anybody else sees it.
struct ChangingDatapath<'d> {
    datapath: RwLockWriteGuard<'d, Datapath>,
    pressures: &'d sieves::Pressures,
}

impl Deref for ChangingDatapath<'_> {
    type Target = Datapath;

    fn deref(&self) -> &Datapath {
        &self.datapath
    }
}

impl DerefMut for ChangingDatapath<'_> {
    fn deref_mut(&mut self) -> &mut Datapath {
        &mut self.datapath
    }
}

impl Drop for ChangingDatapath<'_> {
    fn drop(&mut self) {
        self.pressures.follow(&self.datapath);
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
    /// Not even the beginning.
    #[error("cannot begin: {0}")]
    Runtime(#[source] std::io::Error),
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

/// Runs on a runtime of its own, this thread and some for what blocks, until it is told to end.
pub fn run_alone(options: Options) -> Result<(), DaemonError> {
    memory::prepare();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .on_thread_start(|| {
            // Later there may be no descriptor to be had: each thread looks once how many CPUs there
            // are.
            let _ = possible_cpus();
        })
        // Those that are there stay: later there may be no room for another, if somebody else has
        // taken it all.
        .thread_keep_alive(FOREVER)
        .build()
        .map_err(DaemonError::Runtime)?;
    runtime.block_on(async {
        make_threads().await;
        run(options).await
    })
}

/// Has the threads for what blocks be there from now on.
async fn make_threads() {
    // Each of them has one while it sleeps.
    let made: Vec<_> = (0..BLOCKING)
        .map(|_| spawn_blocking(|| thread::sleep(Duration::from_millis(10))))
        .collect();
    for thread in made {
        // There is nothing in there that fails.
        let _ = thread.await;
    }
}

/// Runs until it is told to end. Then nothing is left attached, but what is pinned.
async fn run(options: Options) -> Result<(), DaemonError> {
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
    let detach = {
        let daemon = Arc::clone(&daemon);
        move || daemon.detach.notify_one()
    };
    service::ready(&service_status(&daemon));
    let end = tokio::select! {
        () = started.control.serve(answer, detach) => End::Stop,
        () = daemon.detach.notified() => End::Detach,
        () = daemon.not_confirmed.notified() => End::NotConfirmed,
        _ = interrupt.recv() => End::Stop,
        _ = terminate.recv() => End::Stop,
        never = watch::interfaces::keep(&daemon) => match never {},
        never = reload::whenever_asked(
            &daemon, started.requests, hang_up, started.files, started.feeds,
        ) => match never {},
        never = incidents::watch(&daemon, quiet) => match never {},
        never = service::stay_alive(&daemon.pulses) => match never {},
        never = logging::tell_lost() => match never {},
        never = state::keep(&daemon) => match never {},
        never = automatic::watch(&daemon) => match never {},
        never = bans::sweep(&daemon) => match never {},
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
