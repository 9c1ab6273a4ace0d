//! What the daemon's parts share.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    ops::{Deref, DerefMut},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
    },
    time::Instant,
};

use limiter_datapath::kernel::{Datapath, DatapathError};
use limiter_policy::policy::Limit;

use super::{
    automatic::Outcomes,
    bans::{BanCounts, BanKeeper},
    capacity::{self, Capacity},
    changes::{Changes, Confirmer},
    connections::Owners,
    dns_cookies::CookieSecrets,
    fleet::Fleet,
    forwarded::Forwarded,
    guard::Guard,
    incidents::{IncidentNote, Recent},
    options::Options,
    pulse::Pulses,
    requests::Requests,
    server_names::{self, Naming},
    sieves::{self, Pressures},
    silence::Silence,
    state::StateKeeper,
    texts::Texts,
    troubles::Troubles,
    watch::logged::Logged,
};
use crate::protocol::{
    AutomaticRate, DaemonStatus, FleetStatus, GuardStatus, History, PageStatus, ServerNamesStatus,
    StateStatus, sieves::SieveBrief,
};

/// The state that the daemon's parts share and answer from.
pub struct Daemon {
    pub(super) options: Options,
    /// The users whom it tells what it knows.
    pub(super) told: Told,
    /// Saves what buckets owe; `None`: no state file is configured.
    pub(super) state: Option<StateKeeper>,
    datapath: RwLock<Datapath>,
    /// The counts of bans, beside the kernel's map.
    pub(super) bans: BanKeeper,
    /// Its part in a fleet; `None`: it is alone.
    pub(super) fleet: Option<Arc<Fleet>>,
    /// Knows the addresses that must not be banned.
    pub(super) guard: Guard,
    /// What was logged of incidents.
    pub(super) incidents: Recent,
    /// What became of automatic bans.
    pub(super) automatic: Outcomes,
    changes: Mutex<Changes>,
    /// Where reloads are requested.
    pub(super) reloads: Requests,
    /// Held while the policy is being changed: one change at a time.
    pub(super) changing: tokio::sync::Mutex<()>,
    /// Notified when a change begins to wait for confirmation, and when the daemon ends.
    pub(super) unconfirmed: Condvar,
    /// The first policy was not confirmed: the daemon must end.
    pub(super) not_confirmed: tokio::sync::Notify,
    /// A change waits no longer: it was confirmed or reverted.
    pub(super) settled: tokio::sync::Notify,
    /// The pressures on sieves.
    pub(super) pressures: Arc<Pressures>,
    /// The thread that names connections.
    pub(super) naming: Arc<Naming>,
    /// The owners with the most open connections.
    pub(super) owners: Owners,
    /// The texts of names that buckets know by hashes.
    pub(super) texts: Texts,
    /// The automatic rates.
    pub(super) capacity: Capacity,
    /// Why nothing is answered.
    pub(super) silence: Silence,
    /// The secrets of DNS cookies.
    pub(super) cookies: CookieSecrets,
    /// Where answers are lost.
    pub(super) lost_answers: Troubles,
    /// What was logged about interfaces.
    pub(super) logged: tokio::sync::Mutex<Logged>,
    /// The patterns of names that no interface matches.
    pub(super) unmatched: Mutex<Vec<String>>,
    /// Interfaces that the policy in force does not fit.
    pub(super) misfits: Troubles,
    /// Of which frames the program on an interface does not see those that it forwards, by its name.
    pub(super) unseen: Troubles,
    /// Limits whose SYN cookies this host does not make.
    pub(super) syn_cookies: Troubles,
    /// How connections are counted that this host forwards.
    pub(super) forwarded: Forwarded,
    /// The threads' signs of life.
    pub(super) pulses: Arc<Pulses>,
    /// The daemon must end and leave nothing behind.
    pub(super) detach: tokio::sync::Notify,
}

/// The users whom the daemon tells what it knows, besides root.
pub(super) struct Told {
    /// Where metrics are served; `None`: nowhere.
    pub(super) metrics: Option<SocketAddr>,
    /// The names under which clients may ask for them.
    pub(super) metrics_hosts: Vec<String>,
    /// Where the page is; `None`: nowhere.
    pub(super) page: Option<PageStatus>,
    /// The group whose members may look; `None`: only root may.
    pub(super) group: Option<String>,
}

impl Daemon {
    pub(super) fn new(
        options: Options,
        told: Told,
        state: Option<StateKeeper>,
        fleet: Option<Arc<Fleet>>,
        reloads: Requests,
        datapath: Datapath,
    ) -> Self {
        Self {
            reloads,
            options,
            told,
            state,
            datapath: RwLock::new(datapath),
            bans: BanKeeper::default(),
            fleet,
            guard: Guard::default(),
            incidents: Recent::default(),
            automatic: Outcomes::default(),
            changes: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
            unconfirmed: Condvar::new(),
            not_confirmed: tokio::sync::Notify::new(),
            settled: tokio::sync::Notify::new(),
            pressures: Arc::default(),
            naming: Arc::default(),
            owners: Owners::default(),
            texts: Texts::default(),
            capacity: Capacity::default(),
            silence: Silence::default(),
            cookies: CookieSecrets::default(),
            lost_answers: Troubles::default(),
            logged: tokio::sync::Mutex::default(),
            unmatched: Mutex::default(),
            misfits: Troubles::default(),
            unseen: Troubles::default(),
            syn_cookies: Troubles::default(),
            forwarded: Forwarded::default(),
            pulses: Arc::default(),
            detach: tokio::sync::Notify::new(),
        }
    }

    /// Returns the datapath in force.
    pub fn datapath(&self) -> RwLockReadGuard<'_, Datapath> {
        // A thread that panicked while holding it left nothing half-changed: see `Datapath::apply`.
        self.datapath.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns why interfaces do not fit the policy in force, or cannot be attached to, by their names.
    #[must_use]
    pub fn misfits(&self) -> BTreeMap<String, String> {
        self.misfits.troubles()
    }

    /// Returns how the policy has changed since the daemon started.
    #[must_use]
    pub fn history(&self) -> History {
        let changes = self.changes();
        let history = changes.history(Instant::now());
        let is_pushed = changes.confirmer() == Some(Confirmer::Fleet);
        drop(changes);
        let fleet = self.fleet.as_ref().filter(|_| is_pushed);
        History {
            pushed_by: fleet.and_then(|fleet| fleet.pusher()),
            ..history
        }
    }

    /// Returns what became of automatic bans since the daemon started.
    #[must_use]
    pub const fn automatic_bans(&self) -> &Outcomes {
        &self.automatic
    }

    /// Returns what was last logged of incidents, the oldest first.
    #[must_use]
    pub fn incidents(&self) -> Vec<IncidentNote> {
        self.incidents.all()
    }

    /// Returns whether the guard knows whom not to ban.
    #[must_use]
    pub fn guard_status(&self) -> GuardStatus {
        self.guard.status()
    }

    /// Returns how saving the state has gone; `None`: no state file is configured.
    #[must_use]
    pub fn state_status(&self) -> Option<StateStatus> {
        self.state.as_ref().map(StateKeeper::status)
    }

    /// Returns what is known of the fleet; `None`: the daemon is alone.
    #[must_use]
    pub fn fleet_status(&self) -> Option<FleetStatus> {
        self.fleet.as_ref().map(|fleet| fleet.status())
    }

    /// Returns how many bans there are, and what was done with them since the daemon started.
    #[must_use]
    pub fn ban_counts(&self) -> BanCounts {
        self.bans.store().counts()
    }

    /// Returns the rate in force of a limit; `None`: it is not automatic.
    pub fn automatic_rate(
        &self,
        datapath: &Datapath,
        limit: &Limit,
    ) -> Result<Option<AutomaticRate>, DatapathError> {
        capacity::status(datapath, Some(&self.capacity), limit)
    }

    /// Returns what came of connections whose names limits count by; `None`: no limit does.
    pub fn server_names(
        &self,
        datapath: &Datapath,
    ) -> Result<Option<ServerNamesStatus>, DatapathError> {
        server_names::status(datapath, Some(&self.naming))
    }

    /// Summarizes the sieves.
    pub fn sieves(&self, datapath: &Datapath) -> Result<Vec<SieveBrief>, DatapathError> {
        sieves::brief(datapath, &self.pressures.measured())
    }

    pub(super) fn status(&self) -> DaemonStatus {
        DaemonStatus {
            metrics: self.told.metrics,
            metrics_hosts: self.told.metrics_hosts.clone(),
            page: self.told.page.clone(),
            group: self.told.group.clone(),
            state: self.state_status(),
            reloads: self.history(),
            guard: self.guard.status(),
            silence: self.silence.reason(),
            lost_answers: self.lost_answers.troubles(),
            misfits: self.misfits(),
            unmatched: (self.unmatched.lock())
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
            unseen: self.unseen.troubles(),
            secrets_error: self.cookies.error(),
            syn_cookies: self.syn_cookies.troubles(),
            tracking: self.forwarded.status(),
            fleet: self.fleet.as_ref().map(|fleet| fleet.brief()),
        }
    }

    /// Returns the signs of life of the threads beside this one.
    #[must_use]
    pub fn pulses(&self) -> &Pulses {
        &self.pulses
    }

    /// Returns the datapath in force, to be changed.
    pub(super) fn datapath_mut(&self) -> ChangingDatapath<'_> {
        ChangingDatapath {
            datapath: self
                .datapath
                .write()
                .unwrap_or_else(PoisonError::into_inner),
            pressures: &self.pressures,
            naming: &self.naming,
        }
    }

    pub(super) fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The datapath while it is changed. On drop, the pressures of what is then in force are measured
/// before anybody else sees it, and connections named by it.
pub(super) struct ChangingDatapath<'d> {
    datapath: RwLockWriteGuard<'d, Datapath>,
    pressures: &'d Pressures,
    naming: &'d Naming,
}

impl Deref for ChangingDatapath<'_> {
    type Target = Datapath;

    fn deref(&self) -> &Datapath {
        &self.datapath
    }
}

impl DerefMut for ChangingDatapath<'_> {
    fn deref_mut(&mut self) -> &mut Datapath {
        &mut self.datapath
    }
}

impl Drop for ChangingDatapath<'_> {
    fn drop(&mut self) {
        self.pressures.follow(&self.datapath);
        self.naming.follow(&self.datapath);
    }
}
