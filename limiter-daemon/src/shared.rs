//! The state that the daemon's threads and tasks share.

use std::{
    net::SocketAddr,
    sync::{Arc, PoisonError, RwLockReadGuard},
    time::Instant,
};

use limiter_datapath::kernel::Datapath;
use limiter_protocol::{DaemonStatus, FleetStatus, History, PageStatus};
use limiter_reputation::pressure::UsePressure;

use super::{
    automatic::{self, Outcomes},
    bans::SharedBans,
    capacity::Capacity,
    changes::Confirmer,
    connections::{self, BusyKeys},
    enforcement::Enforcement,
    fleet::Fleet,
    forwarded::ForwardedStatus,
    guard::Guard,
    incidents::RecentIncidents,
    no_answers::NoAnswers,
    state::StateSaver,
    texts::Texts,
    warnings::Warnings,
};

/// The state that the daemon's threads and tasks share and answer requests from.
pub struct Daemon {
    /// The users who may read the daemon's state.
    pub(super) read_access: ReadAccess,
    /// Saves bucket debts; `None`: no state file is configured.
    pub(super) state: Option<StateSaver>,
    pub(super) enforcement: Arc<Enforcement>,
    pub(super) bans: Arc<SharedBans>,
    /// The daemon's part in a fleet; `None`: it is alone.
    pub(super) fleet: Option<Arc<Fleet>>,
    /// Finds the addresses that must not be banned.
    pub(super) guard: Arc<Guard>,
    /// The last log lines about incidents.
    pub(super) incidents: Arc<RecentIncidents>,
    /// The outcomes of automatic bans.
    pub(super) automatic: Arc<Outcomes>,
    /// The keys with the most open connections.
    pub(super) busy_keys: BusyKeys,
    /// The texts of names that buckets know by hash.
    pub(super) texts: Arc<Texts>,
    /// The automatic rates.
    pub(super) capacity: Arc<Capacity>,
    /// Why no packet is answered.
    pub(super) no_answers: NoAnswers,
    /// Warnings of interfaces that lose answers.
    pub(super) lost_answers: Warnings,
    /// Warnings of limits that rely on SYN cookies which this host does not make.
    pub(super) syn_cookies: Warnings,
    /// The status of counting forwarded connections.
    pub(super) forwarded: ForwardedStatus,
    /// Notified when the daemon must end and leave nothing behind.
    pub(super) detach: tokio::sync::Notify,
}

/// The users, besides root, who may read the daemon's state.
pub(super) struct ReadAccess {
    /// The address of the metrics; `None`: they are off.
    pub(super) metrics: Option<SocketAddr>,
    /// The host names by which clients may ask for metrics.
    pub(super) metrics_hosts: Vec<String>,
    /// The page; `None`: it is off.
    pub(super) page: Option<PageStatus>,
    /// The group with read access; `None`: only root has it.
    pub(super) group: Option<String>,
}

impl Daemon {
    pub(super) fn new(
        enforcement: Enforcement,
        read_access: ReadAccess,
        state: Option<StateSaver>,
        fleet: Option<Arc<Fleet>>,
    ) -> Self {
        Self {
            read_access,
            state,
            bans: Arc::new(SharedBans::new(Arc::clone(&enforcement.datapath))),
            enforcement: Arc::new(enforcement),
            fleet,
            guard: Arc::default(),
            incidents: Arc::default(),
            automatic: Arc::default(),
            busy_keys: BusyKeys::default(),
            texts: Arc::default(),
            capacity: Arc::default(),
            no_answers: NoAnswers::default(),
            lost_answers: Warnings::default(),
            syn_cookies: Warnings::default(),
            forwarded: ForwardedStatus::default(),
            detach: tokio::sync::Notify::new(),
        }
    }

    /// Locks the datapath in force for reading.
    pub(super) fn datapath(&self) -> RwLockReadGuard<'_, Datapath> {
        self.enforcement.datapath()
    }

    /// Returns how the policy has changed since the daemon started.
    pub(super) fn history(&self) -> History {
        let changes = self.enforcement.changes();
        let history = changes.history(Instant::now());
        let is_rollout = changes.confirmer() == Some(Confirmer::Fleet);
        drop(changes);
        let fleet = self.fleet.as_ref().filter(|_| is_rollout);
        History {
            pushed_by: fleet.and_then(|fleet| fleet.leader_name()),
            ..history
        }
    }

    /// The fleet's status; `None`: the daemon is alone.
    pub(super) fn fleet_status(&self) -> Option<FleetStatus> {
        self.fleet.as_ref().map(|fleet| fleet.status())
    }

    /// The pressures on sieves.
    pub(super) fn pressures(&self) -> Vec<UsePressure> {
        self.enforcement.datapath.pressures.measured()
    }

    pub(super) fn status(&self) -> DaemonStatus {
        DaemonStatus {
            metrics: self.read_access.metrics,
            metrics_hosts: self.read_access.metrics_hosts.clone(),
            page: self.read_access.page.clone(),
            group: self.read_access.group.clone(),
            state: self.state.as_ref().map(StateSaver::status),
            reloads: self.history(),
            guard: self.guard.status(),
            no_answers: self.no_answers.reason(),
            lost_answers: self.lost_answers.all(),
            misfits: self.enforcement.misfits.all(),
            unmatched: (self.enforcement.unmatched.lock())
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
            unseen: self.enforcement.unseen.all(),
            secrets_error: self.enforcement.cookies.error(),
            syn_cookies: self.syn_cookies.all(),
            tracking: self.forwarded.status(),
            fleet: self.fleet.as_ref().map(|fleet| fleet.brief()),
        }
    }

    pub(super) fn automatic(&self) -> automatic::BanContext {
        automatic::BanContext {
            bans: Arc::clone(&self.bans),
            guard: Arc::clone(&self.guard),
            outcomes: Arc::clone(&self.automatic),
        }
    }

    pub(super) fn connections(&self) -> connections::PollContext<'_> {
        connections::PollContext {
            datapath: &self.enforcement.datapath,
            busy_keys: &self.busy_keys,
            forwarded: &self.forwarded,
        }
    }
}
