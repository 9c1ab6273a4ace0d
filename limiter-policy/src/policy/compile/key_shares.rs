//! The shares in force of shared limits, if the core runs natively. In the kernel they are in maps.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use limiter_common::{key::BucketKey, strategy::gcra::KeyShare};

/// The most keys with their own shares, and the most keys that are recorded as wanting one.
pub const MOST_KEYS: u32 = 1 << 14;

/// The shares in force, and the demand that packets record beside them.
#[derive(Debug, Default)]
pub struct KeyShares(Mutex<State>);

#[derive(Clone, Debug, Default)]
struct State {
    of_keys: HashMap<BucketKey, KeyShare>,
    wanting: HashMap<BucketKey, u64>,
}

impl Clone for KeyShares {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.state().clone()))
    }
}

impl KeyShares {
    /// Returns a key's share, and adds a packet's cost to its demand.
    #[must_use]
    pub fn want(&self, bucket: &BucketKey, wanted: u64) -> Option<KeyShare> {
        let mut state = self.state();
        let share = state.of_keys.get_mut(bucket)?;
        share.wanted = share.wanted.wrapping_add(wanted);
        Some(*share)
    }

    /// Sets a key's share and keeps its demand so far; `None` removes both.
    pub fn set_key_share(&self, bucket: BucketKey, share: Option<KeyShare>) {
        let of_keys = &mut self.state().of_keys;
        match share {
            Some(share) => {
                let wanted = of_keys.get(&bucket).map_or(0, |before| before.wanted);
                of_keys.insert(bucket, KeyShare { wanted, ..share });
            }
            None => drop(of_keys.remove(&bucket)),
        }
    }

    /// Records that a packet of a key without a share was refused, unless too many others are recorded.
    pub fn record_demand(&self, bucket: &BucketKey) {
        let wanting = &mut self.state().wanting;
        if wanting.len() < MOST_KEYS as usize || wanting.contains_key(bucket) {
            *wanting.entry(*bucket).or_default() += 1;
        }
    }

    /// Returns the shares of keys.
    #[must_use]
    pub fn by_key(&self) -> HashMap<BucketKey, KeyShare> {
        self.state().of_keys.clone()
    }

    /// Takes the recorded keys, each with its number of refused packets.
    #[must_use]
    pub fn take_wanting(&self) -> HashMap<BucketKey, u64> {
        std::mem::take(&mut self.state().wanting)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Ignore poisoning: the fields are plain numbers, so none is half-changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
