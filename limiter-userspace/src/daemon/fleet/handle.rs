//! The state shared between the daemon and its fleet threads.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use limiter_fleet::rollout::RolloutId;
use limiter_policy::fleet::Fleet as Settings;
use tokio::sync::Notify;
use tracing::warn;

use super::rollout::{Lead, OtherRollout};
use crate::protocol::{FleetBrief, FleetNode, FleetShare, FleetSources, FleetStatus};

/// The shortest interval between warnings about messages refused for one reason.
const LOG_AGAIN: Duration = Duration::from_mins(1);

/// The daemon does not belong to a fleet.
#[derive(Debug, thiserror::Error)]
#[error("the daemon belongs to no fleet: configure `fleet`, then start it again")]
pub(in crate::daemon) struct NoFleet;

/// A daemon's part in a fleet.
pub(in crate::daemon) struct Fleet {
    /// As configured when the daemon started.
    pub(in crate::daemon) settings: Settings,
    /// Notified when bans were made or lifted here.
    pub(super) changed: Arc<Notify>,
    /// Notified when the daemon ends.
    pub(super) ending: Notify,
    /// The same for the thread that leases shares of budgets.
    pub(super) leases_ending: Notify,
    /// Whether an operator has trusted or untrusted sources since the last check.
    changed_known: AtomicBool,
    /// The last rollout that began here; `None`: none.
    pub(super) lead: Mutex<Option<Lead>>,
    report: Mutex<Report>,
}

/// The latest report of the fleet threads.
pub(super) struct Report {
    pub(super) is_connected: bool,
    pub(super) error: Option<String>,
    pub(super) since: Instant,
    pub(super) unsent: usize,
    pub(super) held: usize,
    pub(super) bans: BTreeMap<String, u64>,
    pub(super) refused_here: usize,
    pub(super) delay_ns: Option<u64>,
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) refused: BTreeMap<&'static str, u64>,
    /// When the log last had each reason for refused messages.
    logged: BTreeMap<&'static str, Instant>,
    pub(super) nodes: BTreeMap<String, Seen>,
    pub(super) shares: BTreeMap<String, FleetShare>,
    /// The number of nodes with leases; `None`: this one has none, for the error's reason.
    pub(super) sharing_nodes: Option<u64>,
    pub(super) leases_error: Option<String>,
    /// The state of sharing known sources; `None`: not shared.
    pub(super) sources: Option<FleetSources>,
    /// How many policies of rollouts were kept, refused and rolled back.
    pub(super) rollouts: BTreeMap<&'static str, u64>,
    /// The newest rollout known to this node.
    pub(super) newest_rollout: Option<RolloutId>,
    /// The last known rollout of another node.
    pub(super) other_rollout: Option<OtherRollout>,
}

/// A node's last heartbeat.
pub(super) struct Seen {
    pub(super) version: String,
    pub(super) policy: u64,
    /// Its age when it was read, in nanoseconds.
    pub(super) age_ns: u64,
    /// How long the oldest message that the node has not read has been in the stream, in nanoseconds;
    /// `None`: the node does not report its position.
    pub(super) lag_ns: Option<u64>,
    pub(super) at: Instant,
}

impl Fleet {
    pub(in crate::daemon) fn new(settings: Settings) -> Self {
        Self {
            settings,
            changed: Arc::default(),
            ending: Notify::new(),
            leases_ending: Notify::new(),
            changed_known: AtomicBool::new(false),
            lead: Mutex::default(),
            report: Mutex::new(Report {
                is_connected: false,
                error: None,
                since: Instant::now(),
                unsent: 0,
                held: 0,
                bans: BTreeMap::new(),
                refused_here: 0,
                delay_ns: None,
                sent: 0,
                received: 0,
                refused: BTreeMap::new(),
                logged: BTreeMap::new(),
                nodes: BTreeMap::new(),
                shares: BTreeMap::new(),
                sharing_nodes: None,
                leases_error: None,
                sources: None,
                rollouts: BTreeMap::new(),
                newest_rollout: None,
                other_rollout: None,
            }),
        }
    }

    /// Returns the identity of the fleet and of this node.
    pub(in crate::daemon) fn brief(&self) -> FleetBrief {
        FleetBrief::from(&self.settings)
    }

    /// Returns the state of the fleet, as this node knows it.
    pub(in crate::daemon) fn status(&self) -> FleetStatus {
        let report = self.report();
        let ns = |since: Instant| u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let nodes = report.nodes.iter().map(|(name, seen)| {
            let node = FleetNode {
                version: seen.version.clone(),
                policy: format!("{:016x}", seen.policy),
                ago_ns: seen.age_ns.saturating_add(ns(seen.at)),
                lag_ns: seen.lag_ns,
            };
            (name.clone(), node)
        });
        let owned = |counts: &BTreeMap<&'static str, u64>| {
            let counts = counts.iter();
            let counts = counts.map(|(reason, count)| ((*reason).to_owned(), *count));
            counts.collect()
        };
        FleetStatus {
            fleet: self.brief(),
            connected: report.is_connected,
            error: report.error.clone(),
            since_ns: ns(report.since),
            unsent: report.unsent as u64,
            held: report.held as u64,
            bans: report.bans.clone(),
            refused_here: report.refused_here as u64,
            delay_ns: report.delay_ns,
            sent: report.sent,
            received: report.received,
            refused: owned(&report.refused),
            pushes: owned(&report.rollouts),
            nodes: nodes.collect(),
            shares: report.shares.clone(),
            sharing_nodes: report.sharing_nodes,
            leases_error: report.leases_error.clone(),
            sources: report.sources.clone(),
        }
    }

    /// Returns the node with the newest rollout known to this node.
    pub(in crate::daemon) fn leader_name(&self) -> Option<String> {
        let report = self.report();
        let newest = report.newest_rollout.as_ref();
        newest.map(|rollout| rollout.node.to_string())
    }

    /// Records that an operator has trusted or untrusted sources.
    pub(in crate::daemon) fn note_changed_known(&self) {
        self.changed_known.store(true, Relaxed);
    }

    /// Returns whether an operator has done so since the last call.
    pub(super) fn has_changed_known(&self) -> bool {
        self.changed_known.swap(false, Relaxed)
    }

    /// Counts a refused message.
    pub(super) fn refuse(&self, reason: &'static str) {
        *self.report().refused.entry(reason).or_default() += 1;
    }

    /// Counts a refused message, and logs the reason now and then.
    pub(super) fn refuse_message(&self, reason: &'static str, why: &str) {
        self.refuse(reason);
        let now = Instant::now();
        let last = self.report().logged.get(reason).copied();
        if last.is_none_or(|last| now > last + LOG_AGAIN) {
            self.report().logged.insert(reason, now);
            warn!(
                reason,
                why, "what the fleet's store has is not believed: {why}"
            );
        }
    }

    pub(super) fn report(&self) -> MutexGuard<'_, Report> {
        // A panic cannot leave the numbers inconsistent.
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
impl Fleet {
    /// Returns a fleet without a store, of the node `a`.
    pub(super) fn without_store() -> Self {
        let name = |text: &str| text.try_into().expect("a name");
        Self::new(Settings {
            name: name("edge"),
            node: name("a"),
            nodes: 20,
            store: limiter_policy::fleet::StoreAddress {
                tls: false,
                user: None,
                endpoints: Vec::new(),
                sentinel: None,
                database: 0,
            },
            password_file: None,
            key_file: "fleet.key".into(),
            ca_file: None,
            accept_policy: None,
            known_sources: true,
        })
    }
}
