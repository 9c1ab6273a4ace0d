//! Limits whose budget the fleet has in common: this node has a share of each.
//!
//! `limiter-fleet` is the protocol, by which all shares never add up to more than the whole. A thread of its
//! own is this node's part in it: it looks at what packets want (`demand.rs`), asks the other nodes for it
//! by letters over the store (`post.rs`), and puts in force what it has, and for how long
//! (`bucket.rs`). The datapath knows a rate that moves and its end, and no fleet: so without this thread, or
//! without a store, what is lent ends by itself.
//!
//! Nothing is kept on disk. A node that starts anew lends nothing until all that it may have lent is over, and
//! its number among starts is the time.

mod bucket;
mod budget;
mod demand;
mod keeper;
mod lever;
mod me;
#[cfg(test)]
mod model;
mod post;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, io, mem, sync::Arc, time::Duration};

use limiter_datapath::kernel::{Datapath, wall_clock_now};
use limiter_fleet::{Keys, Members, Note, Seal, Terms};
use tokio::{
    runtime::Builder,
    time::{MissedTickBehavior, interval},
};
use tracing::warn;

use self::{
    keeper::{Addressed, Keeper},
    me::Me,
    post::{Carrier, Letters},
};
use super::{handle::Fleet, key_file::KeyFile};
use crate::daemon::{shared::Daemon, worker::Worker};

/// How often this node asks for what it needs.
const TICK: Duration = Duration::from_millis(200);

/// How many ticks lie between two looks at the file with the keys.
const KEY_TICKS: u64 = 25;

/// Starts the thread.
pub(in crate::daemon) fn start(
    daemon: &Arc<Daemon>,
    fleet: &Arc<Fleet>,
    members: &Members,
    keys: &Keys,
) -> io::Result<Worker> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut node = ShareNode::new(Arc::clone(daemon), Arc::clone(fleet), members, keys);
    let ending = Arc::clone(fleet);
    Worker::start(
        "shares",
        move || {
            runtime.block_on(node.live());
            // Looking up a name may take long, and nobody waits for that.
            runtime.shutdown_background();
            node.daemon.pulses.shares.end();
        },
        move || ending.shares_ending.notify_one(),
    )
}

/// This node.
struct ShareNode {
    daemon: Arc<Daemon>,
    fleet: Arc<Fleet>,
    members: Members,
    keeper: Keeper,
    seal: Seal,
    key_file: KeyFile,
    /// The policy that is followed, by its generation; `None`: none yet.
    generation: Option<u64>,
    /// Whether the log says that letters are not believed.
    has_refused: bool,
}

impl ShareNode {
    fn new(daemon: Arc<Daemon>, fleet: Arc<Fleet>, members: &Members, keys: &Keys) -> Self {
        let settings = &fleet.settings;
        let started = u64::try_from(wall_clock_now().as_nanosecond()).unwrap_or_default();
        // The configuration says that the node is one of them.
        let id = members
            .node(settings.node.as_str())
            .unwrap_or(limiter_fleet::NodeId(0));
        let me = Me::new(members.clone(), id, Terms::DEFAULT, started);
        Self {
            seal: seal(&fleet, members, keys.clone()),
            key_file: KeyFile::new(&fleet.settings.key_file),
            members: members.clone(),
            keeper: Keeper::new(me),
            daemon,
            fleet,
            generation: None,
            has_refused: false,
        }
    }

    /// Lives until the daemon ends.
    async fn live(&mut self) {
        let fleet = Arc::clone(&self.fleet);
        let mut carrier = Carrier::start(Arc::clone(&fleet));
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut tick = 0_u64;
        loop {
            tokio::select! {
                biased;
                () = fleet.shares_ending.notified() => return,
                _ = ticks.tick() => {
                    self.daemon.pulses.shares.beat();
                    if tick.is_multiple_of(KEY_TICKS) {
                        self.renew_keys();
                    }
                    tick += 1;
                    let said = self.ask();
                    carrier.send(self.letters(said));
                }
                letter = carrier.arrived.recv() => {
                    let Some(letter) = letter else {
                        return;
                    };
                    let said = self.hear(&letter);
                    carrier.send(self.letters(said));
                }
            }
        }
    }

    /// Asks for what packets want, by the policy in force.
    fn ask(&mut self) -> Vec<Addressed> {
        let daemon = Arc::clone(&self.daemon);
        let datapath = daemon.datapath();
        self.follow(&datapath);
        let said = self.keeper.ask(&*datapath);
        self.fleet.told().shares = self.keeper.status(&*datapath);
        said
    }

    /// Goes on with the policy in force: it must be known before anything is changed in it.
    fn follow(&mut self, datapath: &Datapath) {
        let manifest = datapath.manifest();
        if self.generation != Some(manifest.generation) {
            self.generation = Some(manifest.generation);
            self.keeper.follow(datapath, &manifest.policy.limits);
        }
    }

    fn hear(&mut self, letter: &[u8]) -> Vec<Addressed> {
        if self.keeper.is_idle() {
            return Vec::new();
        }
        match self.seal.open(letter) {
            Ok(notes) => {
                self.has_refused = false;
                let daemon = Arc::clone(&self.daemon);
                let datapath = daemon.datapath();
                self.follow(&datapath);
                self.keeper.hear(&*datapath, &notes)
            }
            Err(error) => {
                self.fleet.refuse("letter");
                if !mem::replace(&mut self.has_refused, true) {
                    warn!("a letter about the fleet's budgets is not believed: {error}");
                }
                Vec::new()
            }
        }
    }

    /// Seals what is to be said, in as few letters to each node as it takes.
    fn letters(&self, said: Vec<Addressed>) -> Letters {
        let mut by_node = BTreeMap::<_, Vec<Note>>::new();
        for (node, note) in said {
            by_node.entry(node).or_default().push(note);
        }
        let mut letters = Letters::new();
        for (node, notes) in by_node {
            if let Some(name) = self.keeper.name_of(node) {
                let sealed = self.seal.letters(&notes);
                letters.extend(sealed.map(|letter| (name.to_owned(), letter)));
            }
        }
        letters
    }

    fn renew_keys(&mut self) {
        // The thread that shares bans says what is wrong with the file.
        if let Some(Ok(keys)) = self.key_file.renewed() {
            self.seal = seal(&self.fleet, &self.members, keys);
        }
    }
}

fn seal(fleet: &Fleet, members: &Members, keys: Keys) -> Seal {
    Seal::new(fleet.settings.name.as_str(), members, &Terms::DEFAULT, keys)
}
