//! Locked access to the bans of the running daemon, and to pinned bans while no daemon runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use limiter_datapath::kernel::{BanMaps, Datapath, DatapathError, monotonic_now};

use super::ban_index::{BanIndex, Bans};
use crate::shared_datapath::SharedDatapath;

/// The bans in the datapath in force, and the daemon's counts of them.
pub(crate) struct SharedBans {
    pub(crate) datapath: Arc<SharedDatapath>,
    /// Locked after the datapath, never before it.
    index: Mutex<BanIndex>,
}

impl SharedBans {
    pub(crate) fn new(datapath: Arc<SharedDatapath>) -> Self {
        Self {
            datapath,
            index: Mutex::default(),
        }
    }

    /// Locks the counts, which are at most a second old.
    pub(crate) fn index(&self) -> MutexGuard<'_, BanIndex> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives `act` exclusive access to the bans: no other change and no policy with other maps comes in between.
    /// Packets and requests do not wait.
    pub(crate) fn change<T, E: From<DatapathError>>(
        &self,
        act: impl FnOnce(&Datapath, &mut Bans<'_, BanMaps>) -> Result<T, E>,
    ) -> Result<T, E> {
        let datapath = self.datapath.read();
        with_bans_of(&datapath, &mut self.index(), act)
    }
}

pub(super) fn with_bans_of<T, E: From<DatapathError>>(
    datapath: &Datapath,
    ban_index: &mut BanIndex,
    act: impl FnOnce(&Datapath, &mut Bans<'_, BanMaps>) -> Result<T, E>,
) -> Result<T, E> {
    let source_maps = datapath.source_maps();
    let maps = source_maps.ok_or(DatapathError::NoPolicy)?;
    let mut bans = ban_index.open(maps.bans(), monotonic_now())?;
    act(datapath, &mut bans)
}
