//! The daemon: runs the datapath, answers requests about it, and ends when told to.

mod automatic;
mod automatic_rates;
mod bans;
mod busy_keys;
mod candidate;
mod capacity;
mod census;
mod changes;
mod confirm;
mod connections;
mod dns_cookies;
mod enforce;
mod enforcement;
mod error;
mod explain;
mod feeds;
mod fleet;
mod forwarded;
mod guard;
pub mod incidents;
mod known;
mod labels;
mod listed;
pub mod logging;
mod measurements;
mod memory;
mod messages;
mod no_answers;
mod offenders;
mod options;
mod own_addresses;
mod pace;
mod pins;
mod queues;
mod reload;
mod replacement;
mod requests;
mod reread;
mod reset;
mod respond;
mod rmem_max;
mod rollout;
mod sent_back;
mod server_names;
mod servers;
mod service;
mod shared;
mod shared_datapath;
mod sieves;
mod standing;
mod starting_point;
mod startup;
mod state;
mod status;
mod syn_cookies;
mod texts;
mod view;
mod warnings;
pub mod watch;
mod watchdog;
mod worker;

use std::{path::PathBuf, sync::Arc, thread, time::Duration};

use limiter_datapath::kernel::possible_cpus;
use limiter_protocol::{control::accepted::hold_spare_descriptor, web::Servers};
use tokio::{
    signal::unix::{SignalKind, signal},
    task::spawn_blocking,
};
use tracing::info;

pub use self::{
    bans::{change_pinned, lift_pinned},
    error::{DaemonError, ReloadError, StartupError},
    known::change_known_pinned,
    options::Options,
    respond::MapCall,
};
use self::{enforcement::Enforcement, reread::ReloadContext};

/// The number of threads for blocking work from the start; the runtime may add more.
const BLOCKING: usize = 4;

/// Longer than any daemon runs.
const FOREVER: Duration = Duration::from_hours(24 * 365 * 100);

enum EndReason {
    /// Pinned objects stay.
    Stop,
    /// Nothing stays.
    Detach,
    /// Nothing stays, and that is an error.
    NotConfirmed,
}

/// Runs the daemon on its own runtime, with this thread and others for blocking work.
pub fn run_alone(options: Options, servers: Servers) -> Result<(), DaemonError> {
    // First, so that its number is low.
    hold_spare_descriptor();
    memory::prepare();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .on_thread_start(|| {
            // Reading the number of CPUs needs a descriptor, and later none may be left, so each thread reads it now.
            let _ = possible_cpus();
        })
        // Threads are kept, as later there may be no room for another, if some other process takes it all.
        .thread_keep_alive(FOREVER)
        .build()
        .map_err(DaemonError::Runtime)?;
    runtime.block_on(async {
        make_threads().await;
        // In a box, as it is too large for the stack.
        Box::pin(run(options, servers)).await
    })
}

/// Starts the threads for blocking work; they stay.
async fn make_threads() {
    // Each sleep occupies one thread.
    let made: Vec<_> = (0..BLOCKING)
        .map(|_| spawn_blocking(|| thread::sleep(Duration::from_millis(10))))
        .collect();
    for thread in made {
        // Nothing in there fails.
        let _ = thread.await;
    }
}

/// Runs until told to end. Afterwards only pinned programs stay attached.
async fn run(options: Options, servers: Servers) -> Result<(), DaemonError> {
    // Before anything is attached: a signal must never end the process without cleaning up.
    let mut interrupt = signal(SignalKind::interrupt()).map_err(DaemonError::Signals)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(DaemonError::Signals)?;
    let hang_up = signal(SignalKind::hangup()).map_err(DaemonError::Signals)?;
    // Handled, so that a write beyond RLIMIT_FSIZE only fails, instead of ending the process.
    let _too_large = signal(SignalKind::from_raw(libc::SIGXFSZ)).map_err(DaemonError::Signals)?;
    let quiet = options.incident_quiet;
    let started = tokio::select! {
        started = startup::start(options, servers) => started?,
        _ = interrupt.recv() => return Ok(()),
        _ = terminate.recv() => return Ok(()),
    };
    let daemon = started.daemon;
    let respond = {
        let daemon = Arc::clone(&daemon);
        move |request| respond::answer(Arc::clone(&daemon), request)
    };
    let detach = {
        let daemon = Arc::clone(&daemon);
        move || daemon.detach.notify_one()
    };
    let (automatic, enforcement) = (daemon.automatic(), &daemon.enforcement);
    let status = || status::status(&daemon.datapath(), Some(&daemon));
    let context = ReloadContext {
        enforcement,
        status: &status,
    };
    service::ready(&enforcement.datapath);
    let end = tokio::select! {
        () = started.control.serve(respond, detach) => EndReason::Stop,
        () = daemon.detach.notified() => EndReason::Detach,
        () = enforcement.not_confirmed.notified() => EndReason::NotConfirmed,
        _ = interrupt.recv() => EndReason::Stop,
        _ = terminate.recv() => EndReason::Stop,
        never = watch::interfaces::maintain(enforcement) => match never {},
        never = reload::on_request(
            context, started.requests, hang_up, started.files, started.feeds,
        ) => match never {},
        never = incidents::watch(
            &enforcement.datapath, &daemon.texts, &daemon.incidents, quiet,
        ) => match never {},
        never = service::stay_alive(&enforcement.watchdog) => match never {},
        never = logging::log_lost() => match never {},
        never = state::maintain(&daemon) => match never {},
        never = automatic::watch(&automatic) => match never {},
        never = bans::sweep(&daemon.bans) => match never {},
        never = known::forget(&enforcement.datapath) => match never {},
        // In boxes, as all of these together are too large for the stack.
        never = Box::pin(started.own_addresses.maintain(&enforcement.datapath, &daemon.no_answers)) => match never {},
        never = Box::pin(sent_back::maintain(&enforcement.datapath, &daemon.lost_answers)) => match never {},
        never = Box::pin(dns_cookies::maintain(&enforcement.datapath, &enforcement.cookies)) => match never {},
        never = Box::pin(syn_cookies::maintain(&enforcement.datapath, &daemon.syn_cookies)) => match never {},
        never = Box::pin(rmem_max::maintain(&enforcement.datapath)) => match never {},
        never = Box::pin(connections::maintain(daemon.connections())) => match never {},
        never = texts::maintain(&enforcement.datapath, &daemon.texts) => match never {},
        never = pins::maintain(enforcement) => match never {},
    };
    service::stopping();
    // Stop before saving: packets pass, even if the file cannot be saved.
    let stopped = stop(enforcement, &end);
    state::save(&daemon).await;
    stopped
}

fn stop(enforcement: &Enforcement, end: &EndReason) -> Result<(), DaemonError> {
    let is_stopped = matches!(end, EndReason::Stop);
    let mut datapath = enforcement.datapath_mut();
    if is_stopped && pins::renew(&mut datapath).is_err() {
        // Links without pinned stages would drop every packet from now on.
        let _ = datapath.detach();
        return Err(DaemonError::NotPinned);
    }
    let pinned: Option<PathBuf> = datapath.pins().map(|pins| pins.directory().to_owned());
    match (end, pinned) {
        (EndReason::Stop, Some(directory)) => {
            info!(
                "told to end: the pins in {} keep enforcing",
                directory.display()
            );
        }
        (EndReason::Stop, None) => info!("told to end: detaching"),
        (EndReason::Detach, _) => info!("told to detach: nothing stays attached or pinned"),
        (EndReason::NotConfirmed, _) => {}
    }
    if !is_stopped {
        datapath.detach()?;
    }
    match end {
        EndReason::NotConfirmed => Err(DaemonError::NotConfirmed),
        EndReason::Stop | EndReason::Detach => Ok(()),
    }
}
