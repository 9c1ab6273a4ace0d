//! The maps of reputations: one set for all interfaces, whatever the buckets' scope.

mod ban_filter;
mod bans;
mod sieves;

use aya::{
    EbpfLoader,
    maps::{Map, MapData},
};
use limiter_common::ban::Filter;

pub use self::{
    bans::BanMaps,
    sieves::{PressureMaps, SieveMaps},
};
use super::{DatapathError, Settings, named::NamedMaps};
use bans::{BAN_FILTER, BAN_LENGTHS, BANS};
use sieves::{PRESSURE, SIEVE_ENTRIES, SIEVE_HEADS, SIEVE_SHARDS, SIEVE_TRAFFIC};

/// Reads and changes the maps of reputations.
pub struct ReputationMaps {
    bans: BanMaps,
    sieves: SieveMaps,
}

impl NamedMaps for ReputationMaps {
    const NAMES: &'static [&'static str] = &[
        BANS,
        BAN_LENGTHS,
        BAN_FILTER,
        SIEVE_ENTRIES,
        SIEVE_HEADS,
        SIEVE_SHARDS,
        PRESSURE,
        SIEVE_TRAFFIC,
    ];

    fn size(loader: &mut EbpfLoader<'_>, settings: Settings) {
        loader
            .map_max_entries(BANS, settings.bans.capacity)
            .map_max_entries(BAN_FILTER, Filter::words(settings.bans.capacity));
        sieves::size(loader, settings.sieves);
    }

    fn new(
        settings: Settings,
        mut open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
    ) -> Result<Self, DatapathError> {
        Ok(Self {
            bans: BanMaps::new(&mut open)?,
            sieves: SieveMaps::new(open, settings.sieves_since)?,
        })
    }

    fn all(&self) -> Vec<(&'static str, &MapData)> {
        let bans = self.bans.maps().into_iter();
        bans.chain(self.sieves.maps()).collect()
    }

    fn is_outdated(&self, map: &str, settings: Settings) -> bool {
        self.sieves.since() != settings.sieves_since && sieves::NAMES.contains(&map)
    }

    fn entries(map: &str, settings: Settings) -> Option<u32> {
        match map {
            BANS => Some(settings.bans.capacity),
            BAN_FILTER => Some(Filter::words(settings.bans.capacity)),
            _ => sieves::entries(map, settings.sieves),
        }
    }
}

impl ReputationMaps {
    /// Returns the bans.
    #[must_use]
    pub const fn bans(&self) -> &BanMaps {
        &self.bans
    }

    /// Returns the sieves.
    #[must_use]
    pub const fn sieves(&self) -> &SieveMaps {
        &self.sieves
    }

    /// Returns the sieves and their pressures, to be changed.
    pub const fn sieves_mut(&mut self) -> &mut SieveMaps {
        &mut self.sieves
    }

    /// Carries over what other maps hold, unless they are the same. If there is no room, fails
    /// before anything is written.
    pub(super) fn carry(&self, from: &Self, now_ns: u64) -> Result<(), DatapathError> {
        self.bans.carry(&from.bans, now_ns)
    }

    /// Replaces what it holds with what other maps hold, unless they are the same; returns how many
    /// bans have no room.
    pub(super) fn follow(&self, from: &Self) -> Result<usize, DatapathError> {
        self.bans.follow(&from.bans)
    }
}
