//! The state that the daemon's threads and tasks share.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, PoisonError, RwLockReadGuard},
    time::Instant,
};

use limiter_datapath::kernel::{Datapath, DatapathError};
use limiter_policy::policy::Limit;
use limiter_protocol::{
    AutomaticRate, DaemonStatus, FleetStatus, GuardStatus, History, PageStatus, ServerNamesStatus,
    StateStatus, sieves::SieveBrief,
};

use super::{
    automatic::{self, Outcomes},
    bans::{BanCounts, SharedBans},
    capacity::{self, Capacity},
    changes::Confirmer,
    connections::{self, BusyKeys},
    enforcement::Enforcement,
    fleet::Fleet,
    forwarded::ForwardedStatus,
    guard::Guard,
    incidents::{IncidentLine, RecentIncidents},
    no_answers::NoAnswers,
    server_names, sieves,
    state::StateSaver,
    texts::Texts,
    warnings::Warnings,
    watchdog::ThreadWatchdog,
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
    pub fn datapath(&self) -> RwLockReadGuard<'_, Datapath> {
        self.enforcement.datapath()
    }

    /// Returns why interfaces do not fit the policy in force, or cannot be attached to, by their names.
    #[must_use]
    pub fn misfits(&self) -> BTreeMap<String, String> {
        self.enforcement.misfits.all()
    }

    /// Returns how the policy has changed since the daemon started.
    #[must_use]
    pub fn history(&self) -> History {
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

    /// The outcomes of automatic bans since the daemon started.
    #[must_use]
    pub fn automatic_bans(&self) -> &Outcomes {
        &self.automatic
    }

    /// The last log lines about incidents, oldest first.
    #[must_use]
    pub fn incidents(&self) -> Vec<IncidentLine> {
        self.incidents.all()
    }

    /// The guard's status.
    #[must_use]
    pub fn guard_status(&self) -> GuardStatus {
        self.guard.status()
    }

    /// The outcome of saving the state; `None`: no state file is configured.
    #[must_use]
    pub fn state_status(&self) -> Option<StateStatus> {
        self.state.as_ref().map(StateSaver::status)
    }

    /// The fleet's status; `None`: the daemon is alone.
    #[must_use]
    pub fn fleet_status(&self) -> Option<FleetStatus> {
        self.fleet.as_ref().map(|fleet| fleet.status())
    }

    /// The number of bans, and of changes to them since the daemon started.
    #[must_use]
    pub fn ban_counts(&self) -> BanCounts {
        self.bans.index().counts()
    }

    /// The rate in force of a limit; `None`: it is not automatic.
    pub fn automatic_rate(
        &self,
        datapath: &Datapath,
        limit: &Limit,
    ) -> Result<Option<AutomaticRate>, DatapathError> {
        capacity::status(datapath, Some(&self.capacity), limit)
    }

    /// The outcomes of connections for limits by server name; `None`: there is no such limit.
    pub fn server_names(
        &self,
        datapath: &Datapath,
    ) -> Result<Option<ServerNamesStatus>, DatapathError> {
        server_names::status(datapath, Some(&self.enforcement.datapath.naming))
    }

    /// Summarizes the sieves.
    pub fn sieves(&self, datapath: &Datapath) -> Result<Vec<SieveBrief>, DatapathError> {
        sieves::brief(datapath, &self.enforcement.datapath.pressures.measured())
    }

    pub(super) fn status(&self) -> DaemonStatus {
        DaemonStatus {
            metrics: self.read_access.metrics,
            metrics_hosts: self.read_access.metrics_hosts.clone(),
            page: self.read_access.page.clone(),
            group: self.read_access.group.clone(),
            state: self.state_status(),
            reloads: self.history(),
            guard: self.guard.status(),
            no_answers: self.no_answers.reason(),
            lost_answers: self.lost_answers.all(),
            misfits: self.misfits(),
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

    /// The watchdog of the other threads.
    #[must_use]
    pub fn watchdog(&self) -> &ThreadWatchdog {
        &self.enforcement.watchdog
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
