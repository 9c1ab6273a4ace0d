//! The settings of instances.

use limiter_common::{
    name_hash::NameKeys,
    policy::Features,
    standing::{self, Settings as Standing},
    table::HashKey,
};
use limiter_policy::{
    config::{Bans, Buckets, Config, Offenders},
    policy::{CompiledPolicy, SieveSizes},
};
use serde::{Deserialize, Serialize};

use super::{
    ConnectionSizes, StandingSizes,
    buckets::BucketSizes,
    error::DatapathError,
    object::{OBJECT, OBJECT_WITH_LOG},
    source_maps::{cached_names, key_shares, own_connections, server_names},
};
use crate::state::{Debts, StoredDebts};

/// The settings that an instance is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The store and the number of buckets.
    pub buckets: Buckets,
    /// The number of remembered offenders.
    pub offenders: Offenders,
    /// The number of addresses and ranges that may be banned.
    pub bans: Bans,
    /// The sizes of the sieves.
    pub sieves: SieveSizes,
    /// The generation of policies that made the present maps of the sieves.
    pub(super) sieves_since: u64,
    /// The sizes of the maps of standings.
    pub standing: StandingSizes,
    /// The sizes of the maps of open connections.
    pub connections: ConnectionSizes,
    /// The number of recorded connections that the host began; 0: none.
    pub(super) own_connections: u32,
    /// The number of recorded connections that limits may count by their names; 0: none.
    pub(super) server_flows: u32,
    /// The number of lines of cached names; 0: no limit asks for them.
    pub(super) cached_name_lines: u32,
    /// The number of keys with their own shares of shared limits; 0: no limit is shared.
    #[serde(rename = "owner_shares")]
    pub(super) key_shares: u32,
    /// The number of QUIC flows recorded with their names; 0: none.
    pub(super) quic_flows: u32,
    /// The verdicts to log.
    pub log: LogLevel,
    /// The secret of the table of buckets, and of the sieves.
    pub(super) hash_key: HashKey,
    /// The secret of the numbers of names, if all nodes of a fleet share it; `None`: the table's secret.
    pub(super) names_key: Option<HashKey>,
}

/// The verdicts that the program logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogLevel {
    /// No verdict: the program has no log statements.
    #[default]
    Off,
    /// Every verdict.
    Verdicts,
}

impl LogLevel {
    /// The object that can log this.
    pub(super) fn object(self) -> &'static [u8] {
        match self {
            Self::Off => OBJECT,
            Self::Verdicts => OBJECT_WITH_LOG,
        }
    }
}

impl Settings {
    /// Makes settings with a newly drawn secret.
    pub fn new(
        buckets: Buckets,
        offenders: Offenders,
        log: LogLevel,
    ) -> Result<Self, DatapathError> {
        Ok(Self {
            buckets,
            offenders,
            bans: Bans::default(),
            sieves: SieveSizes::default(),
            sieves_since: 0,
            standing: StandingSizes::default(),
            connections: ConnectionSizes::default(),
            own_connections: 0,
            server_flows: 0,
            cached_name_lines: 0,
            key_shares: 0,
            quic_flows: 0,
            log,
            hash_key: HashKey {
                first: getrandom::u64().map_err(DatapathError::Random)?,
                second: getrandom::u64().map_err(DatapathError::Random)?,
            },
            names_key: None,
        })
    }

    /// Takes the values of a configuration, and keeps the secret of the table.
    #[must_use]
    pub const fn with(self, config: &Config, log: LogLevel) -> Self {
        Self {
            buckets: config.buckets,
            offenders: config.offenders,
            bans: config.bans,
            names_key: config.names_key,
            log,
            ..self
        }
    }
}

impl Settings {
    /// A policy with the secrets, so that it finds count ids and names as the kernel's programs do.
    pub(super) fn keyed(&self, policy: CompiledPolicy) -> CompiledPolicy {
        policy.keyed(self.hash_key, self.name_keys())
    }

    /// The secrets of the numbers of names.
    #[must_use]
    pub fn name_keys(&self) -> NameKeys {
        NameKeys::new(&self.names_key.unwrap_or(self.hash_key))
    }

    /// The features that look-ups of sources need, for a policy with these settings of standing.
    pub(super) const fn features_of_standing(&self, standing: standing::Settings) -> Features {
        Features {
            hash_key: self.hash_key,
            standing,
            ..Features::EMPTY
        }
    }

    /// The features that counting a policy's handshakes and connections needs.
    pub(super) fn features_of_handshakes(&self, features: &Features) -> Features {
        Features {
            hash_key: self.hash_key,
            table_lines: if features.handshakes == 0 {
                0
            } else {
                BucketSizes::new(self.buckets).table_lines
            },
            when_full: self.buckets.when_full as u32,
            sieve_uses: 0,
            windows: 0,
            reserving: 0,
            automatic: 0,
            shared: 0,
            cookie_port: 0,
            of_answers: [0; 2],
            standing: if features.standing.handshakes_prove == 0 {
                Standing::NONE
            } else {
                features.standing
            },
            ..*features
        }
    }

    /// Takes the sizes that a policy needs.
    #[must_use]
    pub fn sized_for(self, policy: &CompiledPolicy) -> Self {
        Self {
            sieves: SieveSizes::of(&policy.sieves),
            standing: StandingSizes::of(&policy.features),
            connections: ConnectionSizes::of(&policy.features),
            own_connections: own_connections::capacity(&policy.features),
            server_flows: server_names::capacity(&policy.features),
            cached_name_lines: cached_names::lines(&policy.features),
            key_shares: key_shares::capacity(&policy.features),
            quic_flows: server_names::quic_capacity(&policy.server_names),
            ..self
        }
    }

    /// Takes the secret of a saved table, so that its buckets can be restored.
    #[must_use]
    pub const fn resuming(mut self, debts: &Debts) -> Self {
        if let StoredDebts::Table(table) = &debts.stored {
            self.hash_key = table.hash_key;
        }
        self
    }
}
