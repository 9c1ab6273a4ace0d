//! This node's loop: it polls, asks and answers, by the policy in force.

use std::{collections::BTreeMap, mem, sync::Arc, time::Duration};

use limiter_datapath::kernel::{Datapath, monotonic_now, wall_clock_now};
use limiter_fleet::{Keys, Letter, Members, NodeId, Note, Renewal, Seal};
use tokio::time::{MissedTickBehavior, interval};
use tracing::warn;

use super::{
    super::{handle::Fleet, key_file::KeyFile},
    keeper::{Keeper, Said},
    lever::{Host as _, Kernel},
    post::{Carrier, Letters},
};
use crate::daemon::shared::Daemon;

/// The interval between polls.
const TICK: Duration = Duration::from_millis(200);

/// How many ticks lie between two checks of the key file.
const KEY_TICKS: u64 = 25;

/// The most letters handled at once.
const MOST_LETTERS: usize = 64;

pub(super) struct ShareNode {
    daemon: Arc<Daemon>,
    fleet: Arc<Fleet>,
    members: Members,
    keeper: Keeper,
    seal: Seal,
    key_file: KeyFile,
    /// The generation of the current policy; `None`: none yet.
    generation: Option<u64>,
    /// Whether the log has a warning about refused letters.
    has_refused: bool,
}

impl ShareNode {
    pub(super) fn new(
        daemon: Arc<Daemon>,
        fleet: Arc<Fleet>,
        members: &Members,
        keys: &Keys,
    ) -> Self {
        let settings = &fleet.settings;
        let started = u64::try_from(wall_clock_now().as_nanosecond()).unwrap_or_default();
        // The configuration was checked: the node is a member.
        let id = members.node(settings.node.as_str()).unwrap_or(NodeId(0));
        Self {
            seal: seal(&fleet, members, keys.clone()),
            key_file: KeyFile::new(&fleet.settings.key_file),
            members: members.clone(),
            keeper: Keeper::new(
                monotonic_now(),
                members.clone(),
                id,
                members.terms(),
                started,
            ),
            daemon,
            fleet,
            generation: None,
            has_refused: false,
        }
    }

    pub(super) async fn live(&mut self) {
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
                    self.daemon.watchdog.shares.check_in();
                    if tick.is_multiple_of(KEY_TICKS) {
                        self.renew_keys();
                    }
                    tick += 1;
                    let said = self.look();
                    carrier.send(self.letters(said));
                }
                letter = carrier.arrived.recv() => {
                    let Some(letter) = letter else {
                        return;
                    };
                    let mut letters = vec![letter];
                    while letters.len() < MOST_LETTERS && let Ok(letter) = carrier.arrived.try_recv() {
                        letters.push(letter);
                    }
                    let said = self.hear(&letters);
                    carrier.send(self.letters(said));
                }
            }
        }
    }

    /// Polls packets' demand under the policy in force, and asks for it.
    fn look(&mut self) -> Said {
        let daemon = Arc::clone(&self.daemon);
        let datapath = daemon.datapath();
        self.follow(&datapath);
        let Some(kernel) = Kernel::of(&datapath) else {
            return Said::default();
        };
        if self.keeper.is_idle() {
            self.fleet.told().shares.clear();
            return Said::default();
        }
        let said = self.keeper.look(kernel);
        self.fleet.told().shares = self.keeper.status(kernel.now_ns());
        said
    }

    /// Follows the policy in force. Call it before changing any share under that policy.
    fn follow(&mut self, datapath: &Datapath) {
        let manifest = datapath.manifest();
        if self.generation != Some(manifest.generation) {
            self.generation = Some(manifest.generation);
            let names = manifest.settings.name_keys().fingerprint();
            self.keeper
                .follow(&manifest.policy.limits, names, monotonic_now());
        }
    }

    fn hear(&mut self, letters: &[Vec<u8>]) -> Said {
        if self.keeper.is_idle() {
            return Said::default();
        }
        let opened = letters.iter().filter_map(|letter| self.opened(letter));
        let letters: Vec<_> = opened.collect();
        let daemon = Arc::clone(&self.daemon);
        let datapath = daemon.datapath();
        self.follow(&datapath);
        match Kernel::of(&datapath) {
            Some(kernel) => self.keeper.hear(kernel, &letters),
            None => Said::default(),
        }
    }

    /// Opens a letter; `None`: it is refused.
    fn opened(&mut self, letter: &[u8]) -> Option<Letter> {
        match self.seal.open(letter) {
            Ok(letter) => {
                self.has_refused = false;
                Some(letter)
            }
            Err(error) => {
                self.fleet.refuse("letter");
                if !mem::replace(&mut self.has_refused, true) {
                    warn!("a letter about the fleet's budgets is not believed: {error}");
                }
                None
            }
        }
    }

    /// Seals messages, in as few letters to each node as possible.
    fn letters(&self, said: Said) -> Letters {
        let mut by_node = BTreeMap::<_, (Renewal, Vec<Note>)>::new();
        for (node, note) in said.notes {
            by_node.entry(node).or_default().1.push(note);
        }
        for (node, renewal) in said.renewals {
            // A later renewal replaces an earlier one.
            by_node.entry(node).or_default().0 = renewal;
        }
        let mut letters = Letters::new();
        for (node, (renewal, notes)) in by_node {
            if let Some(name) = self.keeper.name_of(node) {
                let header = self.keeper.header(node);
                let sealed = self.seal.letters(&header, renewal, &notes);
                letters.extend(sealed.map(|letter| (name.to_owned(), letter)));
            }
        }
        for node in said.strangers {
            if let Some(name) = self.keeper.name_of(node) {
                let letter = self.seal.empty(&self.keeper.header(node));
                letters.push((name.to_owned(), letter));
            }
        }
        letters
    }

    fn renew_keys(&mut self) {
        // The thread that shares bans reports errors of the file.
        if let Some(Ok(keys)) = self.key_file.renewed() {
            self.seal = seal(&self.fleet, &self.members, keys);
        }
    }
}

fn seal(fleet: &Fleet, members: &Members, keys: Keys) -> Seal {
    Seal::new(
        fleet.settings.name.as_str(),
        members,
        &members.terms(),
        keys,
    )
}
