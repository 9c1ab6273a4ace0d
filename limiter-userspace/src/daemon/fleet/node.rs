//! The node: takes bans from other nodes, and sends the changes made here.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use limiter_common::name_hash::NameKeys;
use limiter_fleet::{
    Keys, OpenError,
    bans::{BanAuthenticator, BanId, BanUpdate, Heartbeat, StreamPlace},
    rollout::RolloutAuthenticator,
};
use limiter_policy::policy;
use tokio::runtime::Handle;
use tracing::{info, warn};

use super::{
    enforce::{self, Enforced},
    handle::Fleet,
    key_file::KeyFile,
    known::{Known, Taken},
    rollout::Rollouts,
    updates::{self, Now},
    warnings::Warnings,
};
use crate::daemon::shared::Daemon;

/// The most bans with a last update that the store may lack, besides unsent ones.
const MOST_DOUBTED: usize = 100_000;

/// The shortest interval between warnings about messages refused for one reason.
const LOG_AGAIN: Duration = Duration::from_mins(1);

pub(super) struct Node {
    pub(super) daemon: Arc<Daemon>,
    pub(super) fleet: Arc<Fleet>,
    /// The runtime of the rest of the daemon, where the guard queries the kernel.
    pub(super) others: Handle,
    pub(super) known: Known,
    pub(super) authenticator: BanAuthenticator,
    pub(super) rollout_authenticator: RolloutAuthenticator,
    /// Its part in rollouts.
    pub(super) rollouts: Rollouts,
    /// Whether the node has read the whole store once.
    pub(super) has_read: bool,
    /// The last message of the stream that was read and enforced.
    pub(super) read: Option<StreamPlace>,
    /// The reasons logged since there was a connection.
    pub(super) warnings: Warnings,
    key_file: KeyFile,
    /// The active bans of other nodes that are refused here, each with the reason.
    refused: HashMap<BanId, &'static str>,
    /// When the log last had each reason for refused messages.
    logged: HashMap<&'static str, Instant>,
    /// The generation of a policy, and its digest.
    policy: (u64, u64),
}

impl Node {
    pub(super) fn new(daemon: Arc<Daemon>, fleet: Arc<Fleet>, keys: &Keys, others: Handle) -> Self {
        let authenticator = BanAuthenticator::new(&fleet.settings.name, keys);
        let key_file = KeyFile::new(&fleet.settings.key_file);
        let rollout_authenticator = RolloutAuthenticator::new(&fleet.settings.name, keys);
        let rollouts = Rollouts::new(&daemon, &fleet);
        Self {
            known: Known::new(fleet.settings.node.clone()),
            daemon,
            fleet,
            others,
            authenticator,
            rollout_authenticator,
            rollouts,
            has_read: false,
            read: None,
            warnings: Warnings::default(),
            key_file,
            refused: HashMap::new(),
            logged: HashMap::new(),
            policy: (0, 0),
        }
    }

    /// Remembers the active bans, which the fleet may know already.
    pub(super) fn begin(&mut self) {
        match enforce::seeds(&self.daemon) {
            Ok(seeds) => self.known.seeds = seeds.into_iter().collect(),
            Err(error) => warn!("the fleet does not receive the bans in force: {error}"),
        }
    }

    /// Records the changes made here since the last call.
    pub(super) fn record_changes(&mut self) {
        let (changes, lost) = self.daemon.bans.ban_index().take_changes();
        if lost > 0 {
            warn!(
                lost,
                "the fleet does not receive some bans and liftings: there were too many at once \
                 (bans: {lost})"
            );
        }
        if changes.is_empty() {
            return;
        }
        let now = Now::new();
        let mut full = false;
        let daemon = Arc::clone(&self.daemon);
        let datapath = daemon.datapath();
        for changed in &changes {
            let (id, state, ends_ms) = updates::state_of(changed, &datapath.manifest().names, now);
            self.refused.remove(&id);
            full |= !self.known.record(id, state, ends_ms, now.ms);
        }
        drop(datapath);
        if full {
            self.refuse("full", "there is no room for more of the fleet's bans");
        }
        self.publish();
    }

    /// Opens a message; counts it if it is not from the fleet.
    pub(super) fn open(&mut self, message: &[u8]) -> Vec<BanUpdate> {
        match self.authenticator.open(message) {
            Ok(updates) => updates,
            Err(error) => {
                self.refuse_message(error);
                Vec::new()
            }
        }
    }

    /// Counts a message that is not from the fleet.
    pub(super) fn refuse_message(&mut self, error: OpenError) {
        self.refuse(reason(error), &error.to_string());
    }

    /// Takes an update from another node; returns the outcome.
    pub(super) fn take(&mut self, update: BanUpdate, now: Now) -> Taken {
        if let Err(wrong) = update.check(now.ms) {
            self.refuse(wrong.name(), &wrong.to_string());
            return Taken::Nothing;
        }
        let taken = self.known.take(update, now.ms);
        match taken {
            Taken::Due => self.fleet.report().received += 1,
            Taken::Full => self.refuse("full", "there is no room for more of the fleet's bans"),
            Taken::InForce | Taken::Older | Taken::Nothing | Taken::Over => {}
        }
        taken
    }

    /// Takes new updates, and enforces the ones that change something.
    pub(super) async fn receive(&mut self, updates: Vec<BanUpdate>) {
        let now = Now::new();
        let mut due = Vec::new();
        for update in updates {
            let id = update.id.clone();
            let delay_ms = now.ms.saturating_sub(update.stamp.ms);
            match self.take(update, now) {
                Taken::Due => {
                    self.fleet.report().delay_ns = Some(delay_ms.saturating_mul(1_000_000));
                    due.push(id);
                }
                Taken::Older => self.doubt(id),
                Taken::InForce | Taken::Nothing | Taken::Over | Taken::Full => {}
            }
        }
        self.enforce(due).await;
    }

    /// Marks a ban: the store may lack its last update.
    pub(super) fn doubt(&mut self, id: BanId) {
        if self.known.doubted.len() < MOST_DOUBTED {
            self.known.doubted.insert(id);
        }
    }

    /// Enforces the last update about some bans.
    pub(super) async fn enforce(&mut self, ids: Vec<BanId>) {
        if ids.is_empty() {
            return;
        }
        let daemon = Arc::clone(&self.daemon);
        let asking = self
            .others
            .spawn(async move { daemon.guard.by_hand(None).await });
        // Fails only when the daemon ends: then there is nothing to enforce.
        let Ok(protected) = asking.await else {
            return;
        };
        match enforce::enforce(&self.daemon, &self.known, &ids, &protected) {
            Ok(enforced) => self.enforced(enforced),
            Err(error) => {
                self.refuse("kernel", &error.to_string());
                self.refused
                    .extend(ids.into_iter().map(|id| (id, "kernel")));
            }
        }
        self.publish();
    }

    fn enforced(&mut self, enforced: Enforced) {
        for id in enforced.allowed {
            self.refused.remove(&id);
        }
        let mut new = Vec::new();
        for refused in enforced.refused {
            if self.refused.insert(refused.id.clone(), refused.reason) != Some(refused.reason) {
                self.fleet.refuse(refused.reason);
                new.push(refused);
            }
        }
        enforce::log_refused(&self.known, &new);
    }

    /// Retries bans refused here, since the guard's protected addresses may have changed. Forgets bans that
    /// are over, and returns them, for the store to forget too.
    pub(super) async fn tidy(&mut self) -> Vec<BanId> {
        let now = Now::new();
        let over = self.known.map.forget(now.ms);
        let (map, refused) = (&self.known.map, &mut self.refused);
        refused.retain(|id, _| map.get(id).is_some_and(|entry| entry.holds(now.ms)));
        let again = refused.keys().cloned().collect();
        self.enforce(again).await;
        over
    }

    /// Returns this node's heartbeat.
    pub(super) fn heartbeat(&mut self, now: Now) -> Heartbeat {
        let datapath = self.daemon.datapath();
        let manifest = datapath.manifest();
        if self.policy.0 != manifest.generation {
            let mut digest = policy::digest(&manifest.policy);
            // A policy decides differently where names have other numbers.
            if manifest.policy.needs_names_alike() {
                digest ^= manifest.settings.name_keys().fingerprint();
            }
            self.policy = (manifest.generation, digest);
        }
        let version = env!("CARGO_PKG_VERSION");
        Heartbeat::new(
            self.fleet.settings.node.clone(),
            version,
            self.policy.1,
            now.ms,
        )
        .with_read(self.read)
    }

    /// Reads the keys again, if their file has changed; returns whether they are different.
    pub(super) fn renew_keys(&mut self) -> bool {
        let Some(read) = self.key_file.renewed() else {
            return false;
        };
        let name = self.fleet.settings.key_file.display();
        match read {
            Ok(keys) => {
                self.authenticator = BanAuthenticator::new(&self.fleet.settings.name, &keys);
                self.rollout_authenticator =
                    RolloutAuthenticator::new(&self.fleet.settings.name, &keys);
                info!("the fleet's keys are those in the file '{name}'");
                self.compare_names_key(&keys);
                true
            }
            Err(error) => {
                warn!("the fleet's keys stay as they were: the file '{name}' {error}");
                false
            }
        }
    }

    /// Warns if the policy in force still numbers names with an earlier key.
    fn compare_names_key(&self, keys: &Keys) {
        let datapath = self.daemon.datapath();
        let manifest = datapath.manifest();
        let by_keys = NameKeys::new(&self.fleet.settings.names_key(keys));
        if manifest.policy.needs_names_alike()
            && by_keys.fingerprint() != manifest.settings.name_keys().fingerprint()
        {
            warn!(
                "limits in common number names by the key of before: once all nodes authenticate with the new one, reload \
                 them all"
            );
        }
    }

    /// Counts a refused message, and logs the reason now and then.
    pub(super) fn refuse(&mut self, reason: &'static str, why: &str) {
        self.fleet.refuse(reason);
        let now = Instant::now();
        let last = self.logged.get(reason);
        if last.is_none_or(|last| now > *last + LOG_AGAIN) {
            self.logged.insert(reason, now);
            warn!(
                reason,
                why, "what the fleet's store has is not believed: {why}"
            );
        }
    }

    /// Publishes the state for status queries.
    pub(super) fn publish(&self) {
        let mut report = self.fleet.report();
        report.unsent = self.known.unsent.len();
        report.held = self.known.map.len();
        report.refused_here = self.refused.len();
    }

    /// Counts the active bans of other nodes.
    pub(super) fn count(&self) {
        let bans = self.known.map.of_others(Now::new().ms, self.refused.keys());
        self.fleet.report().bans = bans;
    }
}

/// Returns the metric name of the error.
const fn reason(error: OpenError) -> &'static str {
    match error {
        OpenError::TooLong => "too_long",
        OpenError::Version => "version",
        OpenError::Mac => "mac",
        OpenError::Body => "unreadable",
    }
}
