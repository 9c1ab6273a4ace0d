//! The node: its part in all that the fleet shares over one session.

use std::sync::Arc;

use limiter_common::name_hash::NameKeys;
use limiter_fleet::Heartbeat;
use limiter_policy::policy;
use tokio::runtime::Handle;
use tracing::{info, warn};

use super::{
    bans::Bans, handle::Fleet, replica::Replica, rollout::RolloutWork, sources::Sources,
    updates::Now, warnings::Warnings,
};
use crate::{bans::SharedBans, enforcement::Enforcement, guard::Guard};

pub(super) struct Node {
    pub(super) enforcement: Arc<Enforcement>,
    pub(super) fleet: Arc<Fleet>,
    /// The runtime of the rest of the daemon, where the guard queries the kernel.
    pub(super) others: Handle,
    pub(super) bans: Replica<Bans>,
    /// `None`: this node does not share known sources.
    pub(super) sources: Option<Replica<Sources>>,
    pub(super) rollout_work: RolloutWork,
    /// Whether a response was too long: then the node reads little at once.
    pub(super) is_careful: bool,
    /// The reasons logged since there was a connection.
    pub(super) warnings: Warnings,
    /// The generation of a policy, and its digest.
    policy: (u64, u64),
}

impl Node {
    pub(super) fn new(
        enforcement: Arc<Enforcement>,
        (bans, guard): (Arc<SharedBans>, Arc<Guard>),
        fleet: Arc<Fleet>,
        others: Handle,
    ) -> Self {
        let bans = Bans::new(bans, guard, Arc::clone(&fleet), others.clone());
        let sources = fleet.settings.known_sources.then(|| {
            let sources = Sources::new(Arc::clone(&enforcement.datapath), Arc::clone(&fleet));
            Replica::new(sources, &fleet)
        });
        Self {
            bans: Replica::new(bans, &fleet),
            sources,
            rollout_work: RolloutWork::new(&enforcement, &fleet),
            is_careful: false,
            warnings: Warnings::default(),
            policy: (0, 0),
            enforcement,
            fleet,
            others,
        }
    }

    /// Records the bans made and lifted here since the last call.
    pub(super) fn record_changes(&mut self) {
        self.bans.shared.record_changes(&mut self.bans.map);
        self.publish();
    }

    /// Returns this node's heartbeat.
    pub(super) fn heartbeat(&mut self, now: Now) -> Heartbeat {
        let datapath = self.enforcement.datapath();
        let manifest = datapath.manifest();
        if self.policy.0 != manifest.generation {
            let mut digest = policy::digest(&manifest.policy);
            // A policy decides differently where names have other numbers.
            if manifest.policy.needs_names_alike() {
                digest ^= manifest.settings.name_keys().fingerprint();
            }
            self.policy = (manifest.generation, digest);
        }
        let settings = &self.fleet.settings;
        Heartbeat {
            node: settings.node.clone(),
            version: Heartbeat::version(env!("CARGO_PKG_VERSION")),
            policy: self.policy.1,
            ms: now.ms,
            read: self.bans.after.filter(|_| self.bans.has_read),
        }
    }

    /// Reads the keys again, if their file has changed; returns whether they are different.
    pub(super) fn renew_keys(&self) -> bool {
        let Some(read) = self.fleet.key_file().renew() else {
            return false;
        };
        let file = self.fleet.settings.key_file.display();
        match &read {
            Ok(()) => {
                info!("the fleet's keys are those in the file '{file}'");
                self.compare_names_key();
            }
            Err(error) => {
                warn!("the fleet's keys stay as they were: the file '{file}' {error}");
            }
        }
        read.is_ok()
    }

    /// Warns if the policy in force still numbers names with an earlier key.
    fn compare_names_key(&self) {
        let datapath = self.enforcement.datapath();
        let manifest = datapath.manifest();
        let settings = &self.fleet.settings;
        let by_keys = NameKeys::new(&settings.names_key(&self.fleet.key_file().keys));
        if manifest.policy.needs_names_alike()
            && by_keys.fingerprint() != manifest.settings.name_keys().fingerprint()
        {
            warn!(
                "limits in common number names by the key of before: once all nodes authenticate with the new one, reload \
                 them all"
            );
        }
    }

    /// Publishes the state for status queries.
    pub(super) fn publish(&self) {
        let mut report = self.fleet.report();
        report.unsent = self.bans.map.unsent() as u64;
        report.held = self.bans.map.len() as u64;
        report.refused_here = self.bans.shared.refused() as u64;
    }

    /// Counts the active bans of other nodes.
    pub(super) fn count(&mut self) {
        let bans = self.bans.shared.count(&mut self.bans.map);
        self.fleet.report().bans = bans;
    }
}
