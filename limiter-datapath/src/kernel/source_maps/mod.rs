//! The source maps: bans, sieves, the standing of sources, the rates in force, facts about the host, DNS
//! cookies, open connections with their names, and connections that the host began. One set serves all interfaces, for
//! any scope of the buckets.

mod ban_filter;
mod ban_hits;
mod bans;
pub(super) mod cached_names;
mod connections;
mod cookies;
pub(super) mod key_shares;
mod own;
pub(super) mod own_connections;
mod queues;
mod rates;
mod refused_questions;
mod rmem_max;
pub(super) mod server_names;
mod sieves;
mod standing;

use std::sync::Arc;

use aya::maps::{Map, MapData};
use limiter_common::ban::Filter;

pub use self::{
    bans::BanMaps,
    cached_names::CachedNameMap,
    connections::{ConnectionMaps, ConnectionSizes},
    cookies::CookieMaps,
    key_shares::KeyShareMaps,
    own::OwnAddressMap,
    own_connections::OwnConnectionMap,
    queues::QueueMaps,
    rates::RateMap,
    refused_questions::RefusedQuestionMap,
    rmem_max::RmemMaxMap,
    server_names::{FirstBytes, Namer, ServerNameMaps},
    sieves::{PressureMaps, SieveMaps},
    standing::{StandingMaps, StandingSizes},
};
use super::{DatapathError, Settings, pinned_maps::PinnedMaps};
use ban_hits::BAN_HITS;
use bans::{BAN_FILTER, BAN_LENGTHS, BANS};
use cached_names::KNOWN_NAMES;
use connections::{CONNECTION_COUNTS, CONNECTIONS, FULL_AT, UNCOUNTED};
use cookies::{COOKIE_CHECKS, COOKIE_KEYS};
use key_shares::{OWNER_SHARES, OWNERS, WANTING};
use own::OWN_ADDRESSES;
use own_connections::OWN_CONNECTIONS;
use queues::{FIRST_SYNS, QUEUE_TRAFFIC, QUEUES, TICKET_KEYS, TICKETS};
use rates::CURRENT_RATES;
use refused_questions::REFUSED_QUESTIONS;
use rmem_max::RMEM_MAX;
use server_names::{FIRST_BYTES, FIRST_BYTES_LOST, FIRST_BYTES_READ, QUIC_FLOWS, SERVER_FLOWS};
use sieves::{PRESSURE, SIEVE_ENTRIES, SIEVE_HEADS, SIEVE_SHARDS, SIEVE_TRAFFIC};
use standing::{FIRST_TRIES, KNOWN, SHORTAGE, STANDING_FILTER};

/// Reads and changes the source maps.
pub struct SourceMaps {
    bans: BanMaps,
    sieves: SieveMaps,
    standing: StandingMaps,
    rates: RateMap,
    own: OwnAddressMap,
    cookies: CookieMaps,
    rmem_max: RmemMaxMap,
    connections: ConnectionMaps,
    own_connections: OwnConnectionMap,
    server_names: Arc<ServerNameMaps>,
    refused_questions: RefusedQuestionMap,
    cached_names: CachedNameMap,
    key_shares: KeyShareMaps,
}

impl PinnedMaps for SourceMaps {
    const NAMES: &'static [&'static str] = &[
        BANS,
        BAN_LENGTHS,
        BAN_FILTER,
        BAN_HITS,
        SIEVE_ENTRIES,
        SIEVE_HEADS,
        SIEVE_SHARDS,
        PRESSURE,
        SIEVE_TRAFFIC,
        KNOWN,
        FIRST_TRIES,
        STANDING_FILTER,
        SHORTAGE,
        CURRENT_RATES,
        OWN_ADDRESSES,
        COOKIE_KEYS,
        COOKIE_CHECKS,
        RMEM_MAX,
        CONNECTIONS,
        CONNECTION_COUNTS,
        UNCOUNTED,
        FULL_AT,
        QUEUES,
        TICKETS,
        TICKET_KEYS,
        FIRST_SYNS,
        QUEUE_TRAFFIC,
        OWN_CONNECTIONS,
        SERVER_FLOWS,
        QUIC_FLOWS,
        FIRST_BYTES,
        FIRST_BYTES_LOST,
        FIRST_BYTES_READ,
        REFUSED_QUESTIONS,
        KNOWN_NAMES,
        OWNERS,
        OWNER_SHARES,
        WANTING,
    ];

    fn new(
        settings: Settings,
        mut open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
    ) -> Result<Self, DatapathError> {
        let connections = ConnectionMaps::new(&mut open, settings.connections, settings.hash_key)?;
        Ok(Self {
            bans: BanMaps::new(&mut open)?,
            sieves: SieveMaps::new(
                &mut open,
                settings.sieves_since,
                connections.counts().again()?,
                settings.hash_key,
            )?,
            rates: RateMap::new(&mut open)?,
            own: OwnAddressMap::new(&mut open)?,
            cookies: CookieMaps::new(&mut open)?,
            rmem_max: RmemMaxMap::new(&mut open)?,
            connections,
            own_connections: OwnConnectionMap::new(&mut open)?,
            server_names: Arc::new(ServerNameMaps::new(&mut open)?),
            refused_questions: RefusedQuestionMap::new(&mut open)?,
            cached_names: CachedNameMap::new(&mut open)?,
            key_shares: KeyShareMaps::new(&mut open)?,
            standing: StandingMaps::new(open, settings.standing)?,
        })
    }

    fn all(&self) -> Vec<(&'static str, &MapData)> {
        let bans = self.bans.maps().into_iter();
        let others = self.sieves.maps().into_iter().chain(self.standing.maps());
        bans.chain(others)
            .chain([self.rates.map(), self.own.map(), self.rmem_max.map()])
            .chain([self.own_connections.map(), self.refused_questions.map()])
            .chain([self.cached_names.map()])
            .chain(self.key_shares.maps())
            .chain(self.cookies.maps())
            .chain(self.server_names.maps())
            .chain(self.connections.maps())
            .collect()
    }

    fn is_outdated(&self, map: &str, settings: Settings) -> bool {
        let of_sieves = self.sieves.since() != settings.sieves_since;
        of_sieves && sieves::NAMES.contains(&map)
            || self.standing.is_outdated(map, settings.standing)
    }

    fn entries(map: &str, settings: Settings) -> Option<u32> {
        match map {
            BANS | BAN_HITS => Some(settings.bans.capacity),
            BAN_FILTER => Some(Filter::words(settings.bans.capacity)),
            OWN_CONNECTIONS => Some(settings.own_connections),
            KNOWN_NAMES => Some(settings.cached_name_lines),
            _ => sieves::entries(map, settings.sieves)
                .or_else(|| key_shares::entries(map, settings.key_shares))
                .or_else(|| standing::entries(map, settings.standing))
                .or_else(|| connections::entries(map, settings.connections))
                .or_else(|| server_names::entries(map, settings.server_flows, settings.quic_flows)),
        }
    }
}

impl SourceMaps {
    /// The bans.
    #[must_use]
    pub const fn bans(&self) -> &BanMaps {
        &self.bans
    }

    /// The sieves.
    #[must_use]
    pub const fn sieves(&self) -> &SieveMaps {
        &self.sieves
    }

    /// The sieves and their pressures, to be changed.
    pub const fn sieves_mut(&mut self) -> &mut SieveMaps {
        &mut self.sieves
    }

    /// The records of sources.
    #[must_use]
    pub const fn standing(&self) -> &StandingMaps {
        &self.standing
    }

    /// The records of sources, to be changed by tests and the benchmark.
    #[cfg(feature = "testing")]
    pub const fn standing_mut(&mut self) -> &mut StandingMaps {
        &mut self.standing
    }

    /// The questions of refused packets.
    #[must_use]
    pub const fn refused_questions(&self) -> &RefusedQuestionMap {
        &self.refused_questions
    }

    /// The names in recent queries.
    #[must_use]
    pub const fn cached_names(&self) -> &CachedNameMap {
        &self.cached_names
    }

    /// The rates in force of limits with an automatic rate.
    #[must_use]
    pub const fn rates(&self) -> &RateMap {
        &self.rates
    }

    /// The keys' own shares of shared limits.
    #[must_use]
    pub const fn key_shares(&self) -> &KeyShareMaps {
        &self.key_shares
    }

    /// The host's own addresses.
    #[must_use]
    pub const fn own(&self) -> &OwnAddressMap {
        &self.own
    }

    /// The keys of DNS cookies, and the results of the checks.
    #[must_use]
    pub const fn cookies(&self) -> &CookieMaps {
        &self.cookies
    }

    /// The open connections.
    #[must_use]
    pub const fn connections(&self) -> &ConnectionMaps {
        &self.connections
    }

    /// The open connections, to be changed by tests.
    #[cfg(feature = "testing")]
    pub const fn connections_mut(&mut self) -> &mut ConnectionMaps {
        &mut self.connections
    }

    /// The connections that the host began.
    #[must_use]
    pub const fn own_connections(&self) -> &OwnConnectionMap {
        &self.own_connections
    }

    /// The connections that limits may count by their names.
    #[must_use]
    pub const fn server_names(&self) -> &Arc<ServerNameMaps> {
        &self.server_names
    }

    /// The setting of receive buffers.
    #[must_use]
    pub const fn rmem_max(&self) -> &RmemMaxMap {
        &self.rmem_max
    }

    /// Copies the contents of other maps, unless the maps are the same. Without room, fails before the first write.
    pub(super) fn migrate_from(
        &self,
        from: &Self,
        settings: Settings,
        now_ns: u64,
    ) -> Result<(), DatapathError> {
        self.bans.migrate_from(&from.bans, now_ns)?;
        self.standing.migrate_from(&from.standing, settings, now_ns)
    }

    /// Replaces its bans with the bans of other maps, and adds their known sources, unless the maps are the same;
    /// returns the number of bans without room.
    pub(super) fn follow(
        &self,
        from: &Self,
        settings: Settings,
        now_ns: u64,
    ) -> Result<usize, DatapathError> {
        self.standing
            .migrate_from(&from.standing, settings, now_ns)?;
        self.bans.follow(&from.bans)
    }
}
