//! This node's loop: it polls, sends requests and replies, by the policy in force.

use std::{collections::BTreeMap, mem, sync::Arc, time::Duration};

use limiter_datapath::kernel::{Datapath, monotonic_now, wall_clock_now};
use limiter_fleet::{Authenticator, Entry, Keys, Members, Message, NodeId, Renewal};
use tokio::time::{MissedTickBehavior, interval};
use tracing::warn;

use super::{
    super::{handle::Fleet, key_file::KeyFile},
    keeper::{Keeper, Outgoing},
    lever::{Host as _, Kernel},
    transport::{Carrier, Messages},
};
use crate::daemon::shared::Daemon;

/// The interval between polls.
const TICK: Duration = Duration::from_millis(200);

/// How many ticks lie between two checks of the key file.
const KEY_TICKS: u64 = 25;

/// The most messages handled at once.
const MOST_MESSAGES: usize = 64;

pub(super) struct ShareNode {
    daemon: Arc<Daemon>,
    fleet: Arc<Fleet>,
    members: Members,
    keeper: Keeper,
    authenticator: Authenticator,
    key_file: KeyFile,
    /// The generation of the current policy; `None`: none yet.
    generation: Option<u64>,
    /// Whether the log has a warning about refused messages.
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
            authenticator: authenticator(&fleet, members, keys.clone()),
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
                    let outgoing = self.poll();
                    carrier.send(self.messages(outgoing));
                }
                message = carrier.arrived.recv() => {
                    let Some(message) = message else {
                        return;
                    };
                    let mut messages = vec![message];
                    while messages.len() < MOST_MESSAGES && let Ok(message) = carrier.arrived.try_recv() {
                        messages.push(message);
                    }
                    let outgoing = self.receive(&messages);
                    carrier.send(self.messages(outgoing));
                }
            }
        }
    }

    /// Polls packets' demand under the policy in force, and requests it.
    fn poll(&mut self) -> Outgoing {
        let daemon = Arc::clone(&self.daemon);
        let datapath = daemon.datapath();
        self.follow(&datapath);
        let Some(kernel) = Kernel::of(&datapath) else {
            return Outgoing::default();
        };
        if self.keeper.is_idle() {
            self.fleet.report().shares.clear();
            return Outgoing::default();
        }
        let outgoing = self.keeper.poll(kernel);
        self.fleet.report().shares = self.keeper.status(kernel.now_ns());
        outgoing
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

    fn receive(&mut self, messages: &[Vec<u8>]) -> Outgoing {
        if self.keeper.is_idle() {
            return Outgoing::default();
        }
        let opened = messages.iter().filter_map(|message| self.opened(message));
        let messages: Vec<_> = opened.collect();
        let daemon = Arc::clone(&self.daemon);
        let datapath = daemon.datapath();
        self.follow(&datapath);
        match Kernel::of(&datapath) {
            Some(kernel) => self.keeper.receive(kernel, &messages),
            None => Outgoing::default(),
        }
    }

    /// Opens a message; `None`: it is refused.
    fn opened(&mut self, message: &[u8]) -> Option<Message> {
        match self.authenticator.open(message) {
            Ok(message) => {
                self.has_refused = false;
                Some(message)
            }
            Err(error) => {
                self.fleet.refuse("message");
                if !mem::replace(&mut self.has_refused, true) {
                    warn!("a message about the fleet's budgets is refused: {error}");
                }
                None
            }
        }
    }

    /// Authenticates entries, in as few messages to each node as possible.
    fn messages(&self, outgoing: Outgoing) -> Messages {
        let mut by_node = BTreeMap::<_, (Renewal, Vec<Entry>)>::new();
        for (node, entry) in outgoing.entries {
            by_node.entry(node).or_default().1.push(entry);
        }
        for (node, renewal) in outgoing.renewals {
            // A later renewal replaces an earlier one.
            by_node.entry(node).or_default().0 = renewal;
        }
        let mut messages = Messages::new();
        for (node, (renewal, entries)) in by_node {
            if let Some(name) = self.keeper.name_of(node) {
                let header = self.keeper.header(node);
                let authenticated = self.authenticator.messages(&header, renewal, &entries);
                messages.extend(authenticated.map(|message| (name.to_owned(), message)));
            }
        }
        for node in outgoing.strangers {
            if let Some(name) = self.keeper.name_of(node) {
                let message = self.authenticator.empty(&self.keeper.header(node));
                messages.push((name.to_owned(), message));
            }
        }
        messages
    }

    fn renew_keys(&mut self) {
        // The thread that shares bans reports errors of the file.
        if let Some(Ok(keys)) = self.key_file.renewed() {
            self.authenticator = authenticator(&self.fleet, &self.members, keys);
        }
    }
}

fn authenticator(fleet: &Fleet, members: &Members, keys: Keys) -> Authenticator {
    Authenticator::new(
        fleet.settings.name.as_str(),
        members,
        &members.terms(),
        keys,
    )
}
