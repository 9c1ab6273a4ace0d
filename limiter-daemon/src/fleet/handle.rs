//! The state shared between the daemon and its fleet threads.

use std::{
    collections::BTreeMap,
    ops::{Deref, DerefMut},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use limiter_fleet::{Envelope, Kind, rollout::Rollouts};
use limiter_policy::fleet::Fleet as Settings;
use limiter_protocol::{FleetBrief, FleetNode, FleetStatus};
use tokio::sync::Notify;
use tracing::warn;

use super::key_file::KeyFile;

/// The shortest interval between warnings about messages refused for one reason.
const LOG_AGAIN: Duration = Duration::from_mins(1);

/// The daemon does not belong to a fleet.
#[derive(Debug, thiserror::Error)]
#[error("the daemon belongs to no fleet: configure `fleet`, then start it again")]
pub(crate) struct NoFleet;

/// A daemon's part in a fleet.
pub(crate) struct Fleet {
    /// As configured when the daemon started.
    pub(crate) settings: Settings,
    key_file: Mutex<KeyFile>,
    /// Notified when bans were made or lifted here.
    pub(super) changed: Arc<Notify>,
    /// Notified when the daemon ends.
    pub(super) ending: Notify,
    /// The same for the thread that leases shares of budgets.
    pub(super) leases_ending: Notify,
    /// Whether an operator has trusted or untrusted sources since the last check.
    changed_known: AtomicBool,
    pub(super) rollouts: Mutex<Rollouts>,
    report: Mutex<Report>,
}

/// The latest report of the fleet threads.
pub(super) struct Report {
    /// Its times are complete only in [`Fleet::status`].
    pub(super) status: FleetStatus,
    /// When the connection began or was lost, or the daemon started.
    pub(super) since: Instant,
    /// When the heartbeats were read.
    pub(super) heartbeats_at: Instant,
    /// When the log last had each reason for refused messages.
    logged: BTreeMap<&'static str, Instant>,
}

impl Deref for Report {
    type Target = FleetStatus;

    fn deref(&self) -> &FleetStatus {
        &self.status
    }
}

impl DerefMut for Report {
    fn deref_mut(&mut self) -> &mut FleetStatus {
        &mut self.status
    }
}

impl Report {
    /// Returns the nodes, each with the present age of its heartbeat.
    pub(super) fn nodes(&self) -> BTreeMap<String, FleetNode> {
        let since_ns = elapsed_ns(self.heartbeats_at);
        let mut nodes = self.status.nodes.clone();
        for node in nodes.values_mut() {
            node.ago_ns = node.ago_ns.saturating_add(since_ns);
        }
        nodes
    }
}

fn elapsed_ns(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

impl Fleet {
    pub(crate) fn new(settings: Settings, key_file: KeyFile) -> Self {
        let now = Instant::now();
        let status = FleetStatus {
            fleet: FleetBrief::from(&settings),
            ..FleetStatus::default()
        };
        Self {
            rollouts: Mutex::new(Rollouts::new(settings.node.clone(), None)),
            settings,
            key_file: Mutex::new(key_file),
            changed: Arc::default(),
            ending: Notify::new(),
            leases_ending: Notify::new(),
            changed_known: AtomicBool::new(false),
            report: Mutex::new(Report {
                status,
                since: now,
                heartbeats_at: now,
                logged: BTreeMap::new(),
            }),
        }
    }

    pub(super) fn key_file(&self) -> MutexGuard<'_, KeyFile> {
        // A panic cannot leave half of the keys.
        self.key_file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the envelope of a kind of messages, with the present keys.
    pub(super) fn envelope(&self, kind: Kind) -> Envelope {
        Envelope::new(kind, &self.settings.name, &self.key_file().keys)
    }

    /// Returns the identity of the fleet and of this node.
    pub(crate) fn brief(&self) -> FleetBrief {
        FleetBrief::from(&self.settings)
    }

    /// Returns the state of the fleet, as this node knows it.
    pub(crate) fn status(&self) -> FleetStatus {
        let report = self.report();
        FleetStatus {
            since_ns: elapsed_ns(report.since),
            nodes: report.nodes(),
            ..report.status.clone()
        }
    }

    /// Records that an operator has trusted or untrusted sources.
    pub(crate) fn note_changed_known(&self) {
        self.changed_known.store(true, Relaxed);
    }

    /// Returns whether an operator has done so since the last call.
    pub(super) fn has_changed_known(&self) -> bool {
        self.changed_known.swap(false, Relaxed)
    }

    /// Counts a refused message.
    pub(super) fn refuse(&self, reason: &'static str) {
        *(self.report().refused.entry(reason.to_owned())).or_default() += 1;
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
