//! The daemon's part in a fleet: a ban made or lifted on one node is made or lifted on all.
//!
//! A thread with its own runtime is the node (`node.rs`). It takes local changes from the journal of bans
//! and exchanges them with other nodes through a store (`session.rs`). `limiter-fleet` orders and checks
//! the updates (`known.rs`). This node's guard and policy decide which of them it enforces (`enforce.rs`).
//! Without a store, enforcement stays as it is, and local changes wait, one entry per ban. `leases/` is
//! this node's part in shared budgets, `sources/` in known sources, and `rollout/` in rollouts.

mod access;
mod enforce;
mod handle;
mod heartbeats;
mod jitter;
mod key_file;
mod known;
mod lag;
mod leases;
mod node;
mod rollout;
mod session;
mod sources;
mod updates;
mod warnings;

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use limiter_fleet::Keys;
use tokio::runtime::{Builder, Handle};
use tracing::{info, warn};

pub(super) use self::{
    handle::{Fleet, NoFleet},
    leases::start as start_leases,
    rollout::RolloutError,
    sources::start as start_sources,
};
use self::{jitter::jittered, node::Node, session::Over};
use super::{shared::Daemon, worker::Worker};

/// The pause before the first reconnection.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// The longest pause between reconnections: with the time that connecting may take, nodes communicate again
/// within five seconds after the store is back.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Starts the thread, from the runtime of the rest of the daemon. The store may be down.
pub(super) fn start(daemon: &Arc<Daemon>, fleet: &Arc<Fleet>, keys: &Keys) -> io::Result<Worker> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let others = Handle::current();
    let changed = Arc::clone(&fleet.changed);
    // The journal has every change from now on; earlier bans are in the table.
    daemon.bans.ban_index().keep_journal(changed);
    let mut node = Node::new(Arc::clone(daemon), Arc::clone(fleet), keys, others);
    let ending = Arc::clone(fleet);
    Worker::start(
        "fleet",
        move || {
            node.daemon.watchdog.fleet.check_in();
            runtime.block_on(live(&mut node));
            // A name look-up may take long; do not wait for it.
            runtime.shutdown_background();
            node.daemon.watchdog.fleet.end();
        },
        move || ending.ending.notify_one(),
    )
}

async fn live(node: &mut Node) {
    node.begin();
    let mut pause = FIRST_PAUSE;
    loop {
        let error = match node.session().await {
            Ok(()) => continue,
            Err(Over::Ending) => return,
            Err(error) => error,
        };
        let was_connected = record_loss(node, &error);
        // Updates that were being sent wait again.
        node.publish();
        if was_connected {
            pause = FIRST_PAUSE;
        }
        if node.rest(jittered(pause)).await.is_err() {
            return;
        }
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

/// Reports why there is no connection; returns whether there was one.
fn record_loss(node: &mut Node, error: &Over) -> bool {
    let why = error.to_string();
    let store = &node.fleet.settings.store;
    let mut report = node.fleet.report();
    let was_connected = report.is_connected;
    if matches!(error, Over::Emptied | Over::Cut | Over::Rekeyed) {
        info!(why, "the fleet's store {store} is read again: {why}");
    } else if node.warnings.is_new(&why) {
        warn!(
            why,
            "the fleet's store {store} is not there: {why}; bans hold as they are, and what is done \
             here is sent later"
        );
    }
    if was_connected || report.error.is_none() {
        report.since = Instant::now();
    }
    report.is_connected = false;
    report.error = Some(why);
    was_connected
}
