//! The maps of reputations: one set for all interfaces, whatever the buckets' scope.

mod bans;

use aya::{
    EbpfLoader,
    maps::{Map, MapData},
};

pub use self::bans::BanMaps;
use super::{DatapathError, Settings, named::NamedMaps};
use bans::{BAN_LENGTHS, BANS};

/// Reads and changes the maps of reputations.
pub struct ReputationMaps {
    bans: BanMaps,
}

impl NamedMaps for ReputationMaps {
    const NAMES: &'static [&'static str] = &[BANS, BAN_LENGTHS];

    fn loader<'l>(settings: Settings) -> EbpfLoader<'l> {
        let mut loader = EbpfLoader::new();
        size(&mut loader, settings);
        loader
    }

    fn new(
        _settings: Settings,
        open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
    ) -> Result<Self, DatapathError> {
        Ok(Self {
            bans: BanMaps::new(open)?,
        })
    }

    fn all(&self) -> Vec<(&'static str, &MapData)> {
        self.bans.maps().into()
    }

    fn entries(map: &str, settings: Settings) -> Option<u32> {
        (map == BANS).then_some(settings.bans.capacity)
    }
}

impl ReputationMaps {
    /// Who is banned.
    #[must_use]
    pub const fn bans(&self) -> &BanMaps {
        &self.bans
    }

    /// Who is banned, to be changed.
    pub const fn bans_mut(&mut self) -> &mut BanMaps {
        &mut self.bans
    }

    /// Takes over what other maps hold, where these are not the same ones. Fails before anything is
    /// written where there is no room.
    pub(super) fn carry(&self, from: &Self, now_ns: u64) -> Result<(), DatapathError> {
        self.bans.carry(&from.bans, now_ns)
    }

    /// Holds from now on what other maps hold, in place of its own, where these are not the same
    /// ones; returns how many bans there is no room for.
    pub(super) fn follow(&self, from: &Self) -> Result<usize, DatapathError> {
        self.bans.follow(&from.bans)
    }
}

/// Has a loader make the maps as large as they are to be.
pub(super) fn size(loader: &mut EbpfLoader<'_>, settings: Settings) {
    loader.map_max_entries(BANS, settings.bans.capacity);
}
