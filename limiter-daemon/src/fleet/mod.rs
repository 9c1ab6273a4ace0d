//! The daemon's part in a fleet: a ban made or lifted on one node is made or lifted on all, and a source proven
//! by one node is trusted by all.
//!
//! A thread with its own runtime is the node (`node.rs`). It exchanges its changes with other nodes through a
//! store (`session.rs`), as two maps that all nodes hold (`replica.rs`): bans (`bans.rs`), from the journal of
//! bans, and known sources (`sources/`), from sweeps of the kernel's table. `limiter-fleet` orders and checks
//! the updates. This node's guard and policy decide which of them it enforces (`enforce.rs`). Without a
//! store, enforcement stays as it is, and local changes wait, one entry per key. `leases/` is this node's part
//! in shared budgets, and `rollout.rs` in rollouts.

mod bans;
mod enforce;
mod handle;
mod heartbeats;
mod jitter;
mod key_file;
mod lag;
mod leases;
mod node;
mod replica;
mod rollout;
mod session;
mod session_end;
mod sources;
mod updates;
mod warnings;

use std::{
    convert::Infallible,
    io,
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use limiter_fleet_store::StoreError;
use tokio::{
    runtime::{Builder, Handle},
    time::sleep,
};
use tracing::{info, warn};

pub(super) use self::{
    handle::{Fleet, NoFleet},
    key_file::KeyFile,
    leases::start as start_leases,
};
use self::{jitter::jittered, node::Node, session_end::SessionEnd};
use super::{bans::SharedBans, enforcement::Enforcement, guard::Guard, worker::Worker};

/// The pause before the first reconnection.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// The longest pause between reconnections: with the time that connecting may take, nodes communicate again
/// within five seconds after the store is back.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The longest interval between two reports to the thread's watchdog.
const ALIVE: Duration = Duration::from_millis(500);

/// Starts the thread, from the runtime of the rest of the daemon. The store may be down.
pub(super) fn start(
    enforcement: &Arc<Enforcement>,
    (bans, guard): (Arc<SharedBans>, Arc<Guard>),
    fleet: &Arc<Fleet>,
) -> io::Result<Worker> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let others = Handle::current();
    let changed = Arc::clone(&fleet.changed);
    // The journal has every change from now on; earlier bans are in the table.
    bans.index().keep_journal(changed);
    let node = Node::new(
        Arc::clone(enforcement),
        (bans, guard),
        Arc::clone(fleet),
        others,
    );
    let ending = Arc::clone(fleet);
    let (watchdog, fleet) = (Arc::clone(&enforcement.watchdog), Arc::clone(fleet));
    Worker::start(
        "fleet",
        move || {
            watchdog.fleet.check_in();
            runtime.block_on(async {
                let mut living = pin!(live(node));
                loop {
                    tokio::select! {
                        never = &mut living => match never {},
                        () = fleet.ending.notified() => return,
                        () = sleep(ALIVE) => watchdog.fleet.check_in(),
                    }
                }
            });
            // A name look-up may take long; do not wait for it.
            runtime.shutdown_background();
            watchdog.fleet.end();
        },
        move || ending.ending.notify_one(),
    )
}

async fn live(mut node: Node) -> Infallible {
    node.bans.begin();
    let fleet = Arc::clone(&node.fleet);
    let mut pause = FIRST_PAUSE;
    loop {
        let Err(error) = node.session().await;
        node.is_careful |= matches!(error, SessionEnd::Store(StoreError::TooLong));
        if record_loss(&mut node, &error) {
            pause = FIRST_PAUSE;
        }
        let mut rest = pin!(sleep(jittered(pause)));
        loop {
            node.record_changes();
            tokio::select! {
                () = &mut rest => break,
                () = fleet.changed.notified() => {}
            }
        }
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

/// Reports why there is no connection; returns whether there was one.
fn record_loss(node: &mut Node, error: &SessionEnd) -> bool {
    let why = error.to_string();
    let fleet = Arc::clone(&node.fleet);
    let store = &fleet.settings.store;
    let is_store_well = matches!(
        error,
        SessionEnd::Emptied | SessionEnd::Rekeyed | SessionEnd::Store(StoreError::Cut)
    );
    if is_store_well {
        info!(why, "the fleet's store {store} is read again: {why}");
        node.stop_sources(None);
    } else {
        if node.warnings.is_new(&why) {
            warn!(
                why,
                "the fleet's store {store} is not there: {why}; bans hold as they are, and what is done \
                 here is sent later"
            );
        }
        node.stop_sources(Some(&why));
    }
    let mut report = fleet.report();
    let was_connected = report.connected;
    if was_connected || report.error.is_none() {
        report.since = Instant::now();
    }
    report.connected = false;
    report.error = Some(why);
    was_connected
}
