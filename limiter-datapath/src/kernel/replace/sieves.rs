//! Sieves whose maps are to be others: whom they know is carried over to the new ones, as far as
//! these have the same lists. What arrives in the milliseconds until the new ones are in use does
//! not count there.

use limiter_common::{
    limit::MAX_LIMIT_IDS,
    sieve::{SieveTraffic, pressure_of_sieve},
};
use limiter_policy::policy::{CompiledPolicy, Policy, Sieve, SieveSizes};
use tracing::info;

use super::Prepared;
use crate::{
    kernel::{Datapath, DatapathError, Manifest, Settings, SieveMaps, monotonic_now, state::State},
    state::SavedSieve,
};

impl Datapath {
    /// The settings of a policy that is to be in force, with room for its sieves: in the maps there
    /// are, where these are laid out alike.
    pub(super) fn sifting(&self, manifest: &Manifest, policy: &CompiledPolicy) -> Settings {
        let same = layout(&self.manifest.policy).eq(layout(&manifest.policy));
        Settings {
            sieves: SieveSizes::of(&policy.sieves),
            sieves_since: if same {
                self.settings().sieves_since
            } else {
                manifest.generation
            },
            ..manifest.settings
        }
    }

    /// Has the sieves of a policy go on with whom those in force know, where they have maps of their
    /// own.
    pub(super) fn carry_sieves(&self, prepared: &mut Prepared) -> Result<(), DatapathError> {
        let settings = prepared.manifest.settings;
        if settings.sieves_since == self.settings().sieves_since {
            return Ok(());
        }
        let (Some(old), Some(new)) = (self.state.reputation(), prepared.state.reputation_mut())
        else {
            return Ok(());
        };
        let (old, new) = (old.sieves(), new.sieves_mut());
        carry_counters(
            (old, &self.manifest.policy),
            (new, &prepared.manifest.policy),
        )?;
        let old_sieves = &self.manifest.policy.sieves;
        let new_sieves = prepared.manifest.policy.sieves.iter();
        for (place, sieve) in new_sieves.enumerate() {
            let before = old_sieves.iter().position(|old| old.name == sieve.name);
            let Some(before) = before else {
                continue;
            };
            if !sieve.has_lists_of(&old_sieves[before]) {
                info!(
                    sieve = sieve.name.as_str(),
                    "the sieve {} begins empty: its lists are others than before", sieve.name
                );
                continue;
            }
            let compiled = (
                self.policy.sieves.get(before),
                prepared.policy.sieves.get(place),
            );
            if let (Some(from), Some(to)) = compiled {
                let left_out =
                    new.memory()
                        .restore(to, &settings.hash_key, &old.memory().snapshot(from));
                info!(
                    sieve = sieve.name.as_str(),
                    left_out,
                    "the sieve {} has new maps, and knows whom it knew (addresses that had no \
                     room: {left_out})",
                    sieve.name
                );
            }
        }
        Ok(())
    }
}

/// Has the sieves of a policy that comes back go on counting where those in force have got to: whom
/// they know is as it was.
pub(super) fn bring_back_counters(
    (state, manifest): (&mut State, &Manifest),
    (in_force, reverted): (&State, &Manifest),
) -> Result<(), DatapathError> {
    if manifest.settings.sieves_since == reverted.settings.sieves_since {
        return Ok(());
    }
    match (in_force.reputation(), state.reputation_mut()) {
        (Some(old), Some(new)) => carry_counters(
            (old.sieves(), &reverted.policy),
            (new.sieves_mut(), &manifest.policy),
        ),
        _ => Ok(()),
    }
}

impl Prepared {
    /// Puts back whom sieves knew `passed_ns` before, into those of the same name with the same
    /// lists; the others begin empty.
    pub fn restore_sieves(&self, saved: &[SavedSieve], passed_ns: u64) {
        let Some(reputation) = self.state.reputation() else {
            return;
        };
        let (memory, hash_key) = (
            reputation.sieves().memory(),
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
                "the sieve {} knows whom it knew (addresses: {})",
                sieve.name,
                saved.count().saturating_sub(left_out)
            );
        }
    }
}

/// What decides where in the maps each sieve is, and what is there.
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

/// Has the maps of a policy go on with what was counted in those of another.
fn carry_counters(
    (old, old_policy): (&SieveMaps, &Policy),
    (new, new_policy): (&mut SieveMaps, &Policy),
) -> Result<(), DatapathError> {
    for limit in 0..MAX_LIMIT_IDS {
        carry_traffic(old, limit, new, limit)?;
    }
    for (to, sieve) in (0..).zip(&new_policy.sieves) {
        let mut before = (0..).zip(&old_policy.sieves);
        if let Some((from, _)) = before.find(|(_, old)| old.name == sieve.name) {
            carry_traffic(old, pressure_of_sieve(from), new, pressure_of_sieve(to))?;
        }
    }
    Ok(())
}

/// Has new maps go on counting at an index with what others have counted at theirs.
fn carry_traffic(
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
