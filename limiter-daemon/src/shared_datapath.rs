//! The datapath in force, which tasks read and changes of the policy replace.

use std::{
    ops::{Deref, DerefMut},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use limiter_datapath::kernel::Datapath;

use super::{server_names::NamerHandle, sieves::Pressures};

/// The datapath in force, and the threads that follow each change of its policy.
pub(super) struct SharedDatapath {
    datapath: RwLock<Datapath>,
    /// The pressures on sieves.
    pub(super) pressures: Arc<Pressures>,
    /// The thread that names connections.
    pub(super) naming: Arc<NamerHandle>,
}

impl SharedDatapath {
    pub(super) fn new(datapath: Datapath) -> Self {
        Self {
            datapath: RwLock::new(datapath),
            pressures: Arc::default(),
            naming: Arc::default(),
        }
    }

    /// Locks it for reading.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Datapath> {
        // A thread that panicked while holding it left nothing half-changed: see `Datapath::apply`.
        self.datapath.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks it for a change.
    pub(super) fn change(&self) -> ChangingDatapath<'_> {
        let datapath = self.datapath.write();
        ChangingDatapath {
            datapath: datapath.unwrap_or_else(PoisonError::into_inner),
            shared: self,
        }
    }
}

/// The datapath while it is changed. On drop, still under the lock, its pressures are measured and connections named
/// by the new policy.
pub(super) struct ChangingDatapath<'d> {
    datapath: RwLockWriteGuard<'d, Datapath>,
    shared: &'d SharedDatapath,
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
        self.shared.pressures.follow(&self.datapath);
        self.shared.naming.follow(&self.datapath);
    }
}
