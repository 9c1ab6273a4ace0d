//! The sieves of the policy in force.

use std::net::IpAddr;

use limiter_common::{
    address::Address,
    policy::{Class, classify},
    sieve::{ListedSource, Pressure, Sieve, SieveTraffic},
};
use limiter_policy::policy::{self, SieveUse};

use super::{Datapath, DatapathError, SieveMaps, SourceMaps, monotonic_now};
use crate::state::SavedSieve;
use limiter_native::SieveMemory;

/// A sieve that is in use.
#[derive(Clone, Copy)]
pub struct LoadedSieve<'d> {
    /// The sieve's index in the policy.
    pub number: usize,
    /// The sieve as configured.
    pub configured: &'d policy::Sieve,
    /// The sieve as the datapath reads it.
    pub compiled: &'d Sieve,
    /// The memory of all sieves.
    pub memory: SieveMemory<'d>,
}

impl Datapath {
    /// The sieves that are in use.
    pub fn sieves(&self) -> impl Iterator<Item = LoadedSieve<'_>> {
        let configured = self.manifest.policy.sieves.iter();
        let all = (0..).zip(configured.zip(&self.policy.sieves));
        let memory = self.sieve_maps().map(SieveMaps::memory);
        all.filter_map(move |(number, (configured, compiled))| {
            Some(LoadedSieve {
                number,
                configured,
                compiled,
                memory: memory.filter(|_| configured.is_on())?,
            })
        })
    }

    /// Captures the contents of the sieves.
    #[must_use]
    pub fn capture_sieves(&self) -> Vec<SavedSieve> {
        let now_ns = monotonic_now();
        let captured = self.sieves().map(|sieve| {
            let snapshot = sieve.memory.snapshot(sieve.compiled);
            SavedSieve::new(sieve.configured, &snapshot, now_ns)
        });
        captured.collect()
    }

    /// The entry of a source in a sieve, with the number of its list; `None`: the source is not
    /// there.
    #[must_use]
    pub fn sieved(&self, sieve: &LoadedSieve<'_>, source: IpAddr) -> Option<(u32, ListedSource)> {
        let hash_key = self.settings().hash_key;
        let source = Address::from(source);
        sieve.memory.find(sieve.compiled, &hash_key, &source)
    }

    /// Whether packets from a source may reach a use of a sieve: lists neither exclude nor block
    /// the source, and the limit that uses the sieve, if any, applies to it.
    #[must_use]
    pub fn may_be_scored(&self, source: IpAddr, used: SieveUse) -> bool {
        let Some(class) = classify(&self.policy, &Address::from(source)) else {
            return false;
        };
        let decided = [Class::EXCLUDED, Class::BLOCKED].contains(&class.listed());
        let counted = used.limit.is_none_or(|id| {
            let mut limits = self.manifest.policy.limits.iter();
            let limit_index = limits.position(|limit| limit.id == id);
            limit_index.is_some_and(|limit_index| class.applies & 1 << limit_index != 0)
        });
        counted && !decided
    }

    /// The traffic counted for a use of a sieve, and its pressure at the time `now_ns` of the
    /// decision's clock; `None`: no pressure.
    pub fn sieve_use(
        &self,
        used: SieveUse,
        now_ns: u64,
    ) -> Result<(SieveTraffic, Option<u8>), DatapathError> {
        let (Some(maps), Some(index)) = (self.sieve_maps(), used.index()) else {
            return Ok((SieveTraffic::default(), None));
        };
        let pressure: Pressure = maps.pressures().pressure(index)?;
        let above = pressure.at(now_ns).checked_sub(1);
        let pressure = above.and_then(|lists| u8::try_from(lists).ok());
        Ok((maps.traffic(index)?, pressure))
    }

    fn sieve_maps(&self) -> Option<&SieveMaps> {
        self.source_maps().map(SourceMaps::sieves)
    }
}
