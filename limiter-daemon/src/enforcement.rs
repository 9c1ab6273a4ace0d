//! The policy in force: how it is attached, and how it changes.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLockReadGuard};

use limiter_datapath::kernel::Datapath;

use super::{
    changes::Changes,
    dns_cookies::CookieSecrets,
    options::Options,
    requests::Requests,
    shared_datapath::{ChangingDatapath, SharedDatapath},
    warnings::Warnings,
    watch::problems::InterfaceProblems,
    watchdog::ThreadWatchdog,
};

/// The policy in force, its changes, and the interfaces that it is attached to.
pub(super) struct Enforcement {
    pub(super) options: Options,
    pub(super) datapath: Arc<SharedDatapath>,
    /// The secrets of DNS cookies.
    pub(super) cookies: Arc<CookieSecrets>,
    changes: Mutex<Changes>,
    /// Requests for reloads go here.
    pub(super) reloads: Requests,
    /// Held while the policy is changed, so that one change happens at a time.
    pub(super) changing: tokio::sync::Mutex<()>,
    /// Notified when a change begins to wait for confirmation, and when the daemon ends.
    pub(super) unconfirmed: Condvar,
    /// Notified when the first policy was not confirmed: the daemon must end.
    pub(super) not_confirmed: tokio::sync::Notify,
    /// Notified when a waiting change is confirmed or reverted.
    pub(super) settled: tokio::sync::Notify,
    /// Facts that were logged about interfaces.
    pub(super) logged: tokio::sync::Mutex<InterfaceProblems>,
    /// The patterns of names that no interface matches.
    pub(super) unmatched: Mutex<Vec<String>>,
    /// Warnings of interfaces that the policy in force does not fit.
    pub(super) misfits: Warnings,
    /// By interface: forwarded frames that the interface's program does not see.
    pub(super) unseen: Warnings,
    /// Watches the threads.
    pub(super) watchdog: Arc<ThreadWatchdog>,
}

impl Enforcement {
    pub(super) fn new(options: Options, reloads: Requests, datapath: Datapath) -> Self {
        Self {
            options,
            datapath: Arc::new(SharedDatapath::new(datapath)),
            cookies: Arc::default(),
            changes: Mutex::default(),
            reloads,
            changing: tokio::sync::Mutex::default(),
            unconfirmed: Condvar::new(),
            not_confirmed: tokio::sync::Notify::new(),
            settled: tokio::sync::Notify::new(),
            logged: tokio::sync::Mutex::default(),
            unmatched: Mutex::default(),
            misfits: Warnings::default(),
            unseen: Warnings::default(),
            watchdog: Arc::default(),
        }
    }

    /// Locks the datapath in force for reading.
    pub(super) fn datapath(&self) -> RwLockReadGuard<'_, Datapath> {
        self.datapath.read()
    }

    /// Locks the datapath in force for a change.
    pub(super) fn datapath_mut(&self) -> ChangingDatapath<'_> {
        self.datapath.change()
    }

    pub(super) fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
