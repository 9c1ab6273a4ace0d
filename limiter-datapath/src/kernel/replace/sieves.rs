//! Migrates sieves to new maps. A sieve with the same lists keeps its addresses. Packets in the
//! milliseconds until the new maps are in use do not count there.

use limiter_common::{
    limit::MAX_LIMIT_IDS,
    sieve::{SieveTraffic, pressure_of_sieve},
};
use limiter_policy::policy::{CompiledPolicy, Policy, Sieve};
use tracing::info;

use super::PreparedPolicy;
use crate::{
    kernel::{
        Datapath, DatapathError, Manifest, Settings, SieveMaps, monotonic_now,
        shared_map_sets::SharedMapSets,
    },
    state::SavedSieve,
};

impl Datapath {
    /// The settings of a policy about to come into force, with room for its sieves. Sieves with the
    /// present layout keep the present maps.
    pub(super) fn sifting(&self, manifest: &Manifest, policy: &CompiledPolicy) -> Settings {
        let same = layout(&self.manifest.policy).eq(layout(&manifest.policy));
        Settings {
            sieves_since: if same {
                self.settings().sieves_since
            } else {
                manifest.generation
            },
            ..manifest.settings.sized_for(policy)
        }
    }

    /// Copies the addresses of the sieves in force to a policy's sieves that have their own maps.
    pub(super) fn migrate_sieves(
        &self,
        prepared: &mut PreparedPolicy,
    ) -> Result<(), DatapathError> {
        let settings = prepared.manifest.settings;
        if settings.sieves_since == self.settings().sieves_since {
            return Ok(());
        }
        let (Some(old), Some(new)) = (
            self.shared_maps.source_maps(),
            prepared.shared_maps.source_maps_mut(),
        ) else {
            return Ok(());
        };
        let (old, new) = (old.sieves(), new.sieves_mut());
        migrate_counters(
            (old, &self.manifest.policy),
            (new, &prepared.manifest.policy),
        )?;
        let old_sieves = &self.manifest.policy.sieves;
        let new_sieves = prepared.manifest.policy.sieves.iter();
        for (index, sieve) in new_sieves.enumerate() {
            let before = old_sieves.iter().position(|old| old.name == sieve.name);
            let Some(before) = before else {
                continue;
            };
            if !sieve.has_lists_of(&old_sieves[before]) {
                info!(
                    sieve = sieve.name.as_str(),
                    "the sieve {} starts empty: its lists have changed", sieve.name
                );
                continue;
            }
            let compiled = (
                self.policy.sieves.get(before),
                prepared.policy.sieves.get(index),
            );
            if let (Some(from), Some(to)) = compiled {
                let left_out =
                    new.memory()
                        .restore(to, &settings.hash_key, &old.memory().snapshot(from));
                info!(
                    sieve = sieve.name.as_str(),
                    left_out,
                    "the sieve {} has new maps with the addresses of the old ones (addresses left \
                     out for want of room: {left_out})",
                    sieve.name
                );
            }
        }
        Ok(())
    }
}

/// Copies the counters of the sieves in force to the sieves of a reverted-to policy; their
/// addresses stay unchanged.
pub(super) fn bring_back_counters(
    (shared_maps, manifest): (&mut SharedMapSets, &Manifest),
    (in_force, reverted): (&SharedMapSets, &Manifest),
) -> Result<(), DatapathError> {
    if manifest.settings.sieves_since == reverted.settings.sieves_since {
        return Ok(());
    }
    match (in_force.source_maps(), shared_maps.source_maps_mut()) {
        (Some(old), Some(new)) => migrate_counters(
            (old.sieves(), &reverted.policy),
            (new.sieves_mut(), &manifest.policy),
        ),
        _ => Ok(()),
    }
}

impl PreparedPolicy {
    /// Restores sieves saved `passed_ns` ago into sieves with the same name and lists; the others
    /// start empty.
    pub fn restore_sieves(&self, saved: &[SavedSieve], passed_ns: u64) {
        let Some(source_maps) = self.shared_maps.source_maps() else {
            return;
        };
        let (memory, hash_key) = (
            source_maps.sieves().memory(),
            self.manifest.settings.hash_key,
        );
        let sieves = self.manifest.policy.sieves.iter().zip(&self.policy.sieves);
        for (sieve, compiled) in sieves.filter(|(sieve, _)| sieve.is_on()) {
            let Some(saved) = saved.iter().find(|saved| saved.fits(sieve)) else {
                continue;
            };
            let snapshot = saved.snapshot(monotonic_now(), passed_ns);
            let left_out = memory.restore(compiled, &hash_key, &snapshot);
            info!(
                sieve = sieve.name.as_str(),
                "the sieve {} has its saved addresses again (addresses: {})",
                sieve.name,
                saved.count().saturating_sub(left_out)
            );
        }
    }
}

/// The properties that determine each sieve's region of the maps, and its contents.
fn layout(policy: &Policy) -> impl Iterator<Item = (&str, u8, u8, u8)> {
    policy.sieves.iter().map(|sieve| {
        let Sieve {
            name,
            buckets,
            size,
            ipv6_prefix,
            ..
        } = sieve;
        (name.as_str(), *buckets, *size, *ipv6_prefix)
    })
}

/// Copies counters from the maps of one policy to the maps of another.
fn migrate_counters(
    (old, old_policy): (&SieveMaps, &Policy),
    (new, new_policy): (&mut SieveMaps, &Policy),
) -> Result<(), DatapathError> {
    for limit in 0..MAX_LIMIT_IDS {
        migrate_traffic(old, limit, new, limit)?;
    }
    for (to, sieve) in (0..).zip(&new_policy.sieves) {
        let mut before = (0..).zip(&old_policy.sieves);
        if let Some((from, _)) = before.find(|(_, old)| old.name == sieve.name) {
            migrate_traffic(old, pressure_of_sieve(from), new, pressure_of_sieve(to))?;
        }
    }
    Ok(())
}

/// Copies the counters at one index to another index in new maps.
fn migrate_traffic(
    old: &SieveMaps,
    from: u32,
    new: &mut SieveMaps,
    to: u32,
) -> Result<(), DatapathError> {
    let traffic = old.traffic(from)?;
    if traffic == SieveTraffic::default() {
        return Ok(());
    }
    new.set_traffic(to, traffic)
}
