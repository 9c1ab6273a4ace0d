//! The shares in force of shared limits, if the core runs natively. In the kernel they are in maps.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
};

use limiter_common::{
    limit::LimitId,
    owner::BucketKey,
    strategy::gcra::{OwnerShare, ShareWord},
};

/// The most owners with their own shares, and the most owners that are noted as wanting one.
pub const MOST_OWNERS: u32 = 1 << 14;

/// The shares in force, and the demand that packets note beside them.
#[derive(Debug, Default)]
pub struct OwnerShares(Mutex<State>);

#[derive(Clone, Debug, Default)]
struct State {
    of_limits: BTreeMap<LimitId, ShareWord>,
    of_owners: HashMap<BucketKey, OwnerShare>,
    wanting: HashMap<BucketKey, u64>,
}

impl Clone for OwnerShares {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.state().clone()))
    }
}

impl OwnerShares {
    /// Returns the share of owners without their own.
    #[must_use]
    pub fn of_limit(&self, limit: LimitId) -> ShareWord {
        self.state()
            .of_limits
            .get(&limit)
            .copied()
            .unwrap_or_default()
    }

    /// Sets the share of owners without their own.
    pub fn set_limit(&self, limit: LimitId, word: ShareWord) {
        self.state().of_limits.insert(limit, word);
    }

    /// Returns an owner's share, and adds a packet's cost to its demand.
    #[must_use]
    pub fn want(&self, bucket: &BucketKey, wanted: u64) -> Option<OwnerShare> {
        let mut state = self.state();
        let share = state.of_owners.get_mut(bucket)?;
        share.wanted = share.wanted.wrapping_add(wanted);
        Some(*share)
    }

    /// Sets an owner's share and keeps its demand so far; `None` removes both.
    pub fn set_owner(&self, bucket: BucketKey, share: Option<OwnerShare>) {
        let of_owners = &mut self.state().of_owners;
        match share {
            Some(share) => {
                let wanted = of_owners.get(&bucket).map_or(0, |before| before.wanted);
                of_owners.insert(bucket, OwnerShare { wanted, ..share });
            }
            None => drop(of_owners.remove(&bucket)),
        }
    }

    /// Notes that a packet of an owner without a share was refused, unless too many others are noted.
    pub fn note_wanting(&self, bucket: &BucketKey) {
        let wanting = &mut self.state().wanting;
        if wanting.len() < MOST_OWNERS as usize || wanting.contains_key(bucket) {
            *wanting.entry(*bucket).or_default() += 1;
        }
    }

    /// Returns the shares of owners.
    #[must_use]
    pub fn owners(&self) -> HashMap<BucketKey, OwnerShare> {
        self.state().of_owners.clone()
    }

    /// Takes the noted owners, each with its number of refused packets.
    #[must_use]
    pub fn take_wanting(&self) -> HashMap<BucketKey, u64> {
        std::mem::take(&mut self.state().wanting)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Ignore poisoning: the fields are plain numbers, so none is half-changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
