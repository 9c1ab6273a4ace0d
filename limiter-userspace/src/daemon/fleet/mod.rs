//! The daemon's part in a fleet: bans that are made or lifted on one node are so on all.
//!
//! A thread with a runtime of its own is the node (`node.rs`): it takes what is done here out of the
//! journal of bans, and exchanges it with the other nodes over a store (`session.rs`).
//! `limiter-fleet` says in which order things were said and what of that is believed
//! (`known.rs`); this node's guard and policy have the last word on what is in force here
//! (`enforce.rs`). Without a store everything goes on as it is, and what is done here waits, each ban
//! once. `shares/` is this node's part in budgets that the fleet has in common, `sources/` in known
//! sources, and `push/` in policies that a node pushes to all.

mod access;
mod beats;
mod complaints;
mod enforce;
mod handle;
mod jitter;
mod key_file;
mod known;
mod lag;
mod node;
mod push;
mod session;
mod shares;
mod sources;
mod words;

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
    push::PushingError,
    shares::start as start_shares,
    sources::start as start_sources,
};
use self::{jitter::jittered, node::Node, session::Over};
use super::{shared::Daemon, worker::Worker};

/// How long to wait before the first attempt to connect again.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// How long to wait at most: with the time that connecting may take, nodes hear each other five seconds after
/// the store is back.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Starts the thread, from the runtime of the rest of the daemon. The store need not be there.
pub(super) fn start(daemon: &Arc<Daemon>, fleet: &Arc<Fleet>, keys: &Keys) -> io::Result<Worker> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let others = Handle::current();
    let changed = Arc::clone(&fleet.changed);
    // From now on nothing is missed; what was before is in the table.
    daemon.bans.store().keep_journal(changed);
    let mut node = Node::new(Arc::clone(daemon), Arc::clone(fleet), keys, others);
    let ending = Arc::clone(fleet);
    Worker::start(
        "fleet",
        move || {
            node.daemon.pulses.fleet.beat();
            runtime.block_on(live(&mut node));
            // Looking up a name may take long, and nobody waits for that.
            runtime.shutdown_background();
            node.daemon.pulses.fleet.end();
        },
        move || ending.ending.notify_one(),
    )
}

/// Lives until the daemon ends.
async fn live(node: &mut Node) {
    node.begin();
    let mut pause = FIRST_PAUSE;
    loop {
        let error = match node.session().await {
            Ok(()) => continue,
            Err(Over::Ending) => return,
            Err(error) => error,
        };
        let was_connected = note_lost(node, &error);
        // Notes that were under way wait again.
        node.tell();
        if was_connected {
            pause = FIRST_PAUSE;
        }
        if node.rest(jittered(pause)).await.is_err() {
            return;
        }
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

/// Notes why there is no connection; returns whether there was one.
fn note_lost(node: &mut Node, error: &Over) -> bool {
    let why = error.to_string();
    let store = &node.fleet.settings.store;
    let mut told = node.fleet.told();
    let was_connected = told.is_connected;
    if matches!(error, Over::Emptied | Over::Cut | Over::Rekeyed) {
        info!(why, "the fleet's store {store} is read again: {why}");
    } else if node.complaints.is_new(&why) {
        warn!(
            why,
            "the fleet's store {store} is not there: {why}; bans hold as they are, and what is done \
             here is told later"
        );
    }
    if was_connected || told.error.is_none() {
        told.since = Instant::now();
    }
    told.is_connected = false;
    told.error = Some(why);
    was_connected
}
