//! Locked access to the bans of the running daemon, and to pinned bans while no daemon runs.

use std::sync::{Mutex, MutexGuard, PoisonError};

use limiter_datapath::kernel::{BanMaps, Datapath, DatapathError, monotonic_now};

use super::ban_index::{BanIndex, Bans};

/// The daemon's counts of bans, beside the kernel's map.
#[derive(Default)]
pub(in crate::daemon) struct SharedBanIndex {
    /// Locked after the datapath, never before it.
    ban_index: Mutex<BanIndex>,
}

impl SharedBanIndex {
    /// Locks the counts, which are at most a second old.
    pub(in crate::daemon) fn ban_index(&self) -> MutexGuard<'_, BanIndex> {
        self.ban_index
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
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
