//! What the parts of the daemon share.

use std::{
    net::SocketAddr,
    ops::{Deref, DerefMut},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
    },
};

use limiter_datapath::kernel::{Datapath, DatapathError};

use super::{
    automatic::Outcomes,
    bans::{BanCounts, BanKeeper},
    changes::Changes,
    guard::Guard,
    options::Options,
    pulse::Pulses,
    requests::Requests,
    sieves::{self, Pressures},
    state::StateKeeper,
};
use crate::protocol::{DaemonStatus, GuardStatus, History, StateStatus, sieves::SieveBrief};

/// What the daemon answers from.
pub struct Daemon {
    pub(super) options: Options,
    /// Where the metrics are; `None`: nowhere.
    pub(super) metrics: Option<SocketAddr>,
    /// Saves what buckets owe; `None`: nobody wants it.
    pub(super) state: Option<StateKeeper>,
    datapath: RwLock<Datapath>,
    /// What is known of bans beside the kernel's map.
    pub(super) bans: BanKeeper,
    /// Knows the addresses that are not to be banned.
    pub(super) guard: Guard,
    /// What became of automatic bans.
    pub(super) automatic: Outcomes,
    changes: Mutex<Changes>,
    /// Who asks for a reload.
    pub(super) reloads: Requests,
    /// Held while the policy is being changed: one change at a time.
    pub(super) changing: tokio::sync::Mutex<()>,
    /// A change has begun to wait for confirmation, or nobody has to see to that any more.
    pub(super) unconfirmed: Condvar,
    /// The first policy was not confirmed: it is to end.
    pub(super) not_confirmed: tokio::sync::Notify,
    /// A change waits no more: it was confirmed, or reverted.
    pub(super) settled: tokio::sync::Notify,
    /// Under which pressure sieves are.
    pub(super) pressures: Arc<Pressures>,
    /// Which of the threads live.
    pub(super) pulses: Arc<Pulses>,
    /// It is to end, and to leave nothing behind.
    pub(super) detach: tokio::sync::Notify,
}

impl Daemon {
    pub(super) fn new(
        options: Options,
        metrics: Option<SocketAddr>,
        state: Option<StateKeeper>,
        reloads: Requests,
        datapath: Datapath,
    ) -> Self {
        Self {
            reloads,
            options,
            metrics,
            state,
            datapath: RwLock::new(datapath),
            bans: BanKeeper::default(),
            guard: Guard::default(),
            automatic: Outcomes::default(),
            changes: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
            unconfirmed: Condvar::new(),
            not_confirmed: tokio::sync::Notify::new(),
            settled: tokio::sync::Notify::new(),
            pressures: Arc::default(),
            pulses: Arc::default(),
            detach: tokio::sync::Notify::new(),
        }
    }

    /// What is in force.
    pub fn datapath(&self) -> RwLockReadGuard<'_, Datapath> {
        // Whoever panicked with it has changed nothing by halves: see `Datapath::apply`.
        self.datapath.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the policy has changed since the daemon runs.
    #[must_use]
    pub fn history(&self) -> History {
        self.changes().history()
    }

    /// What became of automatic bans since the daemon runs.
    #[must_use]
    pub const fn automatic_bans(&self) -> &Outcomes {
        &self.automatic
    }

    /// Whether it is known whom not to ban.
    #[must_use]
    pub fn guard_status(&self) -> GuardStatus {
        self.guard.status()
    }

    /// How saving the state has gone; `None`: nobody wants it.
    #[must_use]
    pub fn state_status(&self) -> Option<StateStatus> {
        self.state.as_ref().map(StateKeeper::status)
    }

    /// How many bans there are, and what was done with them since the daemon runs.
    #[must_use]
    pub fn ban_counts(&self) -> BanCounts {
        self.bans.store().counts()
    }

    /// The sieves at a glance.
    pub fn sieves(&self, datapath: &Datapath) -> Result<Vec<SieveBrief>, DatapathError> {
        sieves::brief(datapath, &self.pressures.measured())
    }

    pub(super) fn status(&self) -> DaemonStatus {
        DaemonStatus {
            metrics: self.metrics,
            state: self.state_status(),
            reloads: self.history(),
            guard: self.guard.status(),
        }
    }

    /// Where the threads beside this one give signs of life.
    #[must_use]
    pub fn pulses(&self) -> &Pulses {
        &self.pulses
    }

    /// What is in force, to be changed.
    pub(super) fn datapath_mut(&self) -> ChangingDatapath<'_> {
        ChangingDatapath {
            datapath: self
                .datapath
                .write()
                .unwrap_or_else(PoisonError::into_inner),
            pressures: &self.pressures,
        }
    }

    pub(super) fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The datapath while it is changed. Whatever is in force then, its pressures are measured before
/// anybody else sees it.
pub(super) struct ChangingDatapath<'d> {
    datapath: RwLockWriteGuard<'d, Datapath>,
    pressures: &'d Pressures,
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
    }
}
