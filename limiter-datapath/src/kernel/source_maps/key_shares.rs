//! The maps of the keys' own shares of shared limits. Only the daemon gives and takes shares. Packets count the
//! demand, and record keys that want a share and have none.
//!
//! A share has a number, its index in an array, for as long as its key has the share. Words change in place, so
//! that programs see whole words, and no packet's count is lost. The number of a removed key is free for another
//! only after all programs that may have found it have ended.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use aya::maps::{HashMap as KernelHashMap, IterableMap as _, Map, MapData};
use limiter_common::{
    key::BucketKey,
    limit::LimitId,
    policy::Features,
    strategy::gcra::{KeyShare, ShareWord},
};
use limiter_policy::policy::MOST_KEYS;

use crate::kernel::{
    DatapathError,
    grace::wait_for_running_programs,
    hash,
    map::error,
    mapped_array::{MapElement, MappedArray},
    pod::InMap,
};

pub(in crate::kernel) const OWNERS: &str = "OWNERS";
pub(in crate::kernel) const OWNER_SHARES: &str = "OWNER_SHARES";
pub(in crate::kernel) const WANTING: &str = "WANTING";

const NAMES: [&str; 3] = [OWNERS, OWNER_SHARES, WANTING];

/// The number of keys with room for a share under a policy with these features; 0: no key has its own share.
pub(in crate::kernel) const fn capacity(features: &Features) -> u32 {
    if features.shared == 0 { 0 } else { MOST_KEYS }
}

/// The number of entries of a map; `None`: the map is not one of these.
pub(super) fn entries(map: &str, capacity: u32) -> Option<u32> {
    NAMES.contains(&map).then_some(capacity)
}

/// A [`KeyShare`] in shared memory: packets read it and count in it.
#[repr(C)]
struct MapKeyShare {
    word: AtomicU64,
    after: AtomicU64,
    wanted: AtomicU64,
}

// SAFETY: the type has exactly three such words.
unsafe impl MapElement for MapKeyShare {
    type Value = [u64; 3];
}

impl MapKeyShare {
    fn get(&self) -> KeyShare {
        KeyShare {
            word: ShareWord(self.word.load(Ordering::Acquire)),
            after: self.after.load(Ordering::Acquire),
            wanted: self.wanted.load(Ordering::Relaxed),
        }
    }

    /// Sets the share, and leaves the demand. A program may see one old word and one new.
    fn set(&self, share: &KeyShare) {
        self.after.store(share.after, Ordering::Release);
        self.word.store(share.word.0, Ordering::Release);
    }
}

struct Numbers {
    of_keys: HashMap<BucketKey, u32>,
    /// The key of each number; `None`: the number is free, or about to be.
    keys: Vec<Option<BucketKey>>,
    free: Vec<u32>,
}

impl Numbers {
    fn give(&mut self, bucket: BucketKey, number: u32) {
        self.of_keys.insert(bucket, number);
        if let Some(key) = self.keys.get_mut(number as usize) {
            *key = Some(bucket);
        }
    }

    fn take(&mut self, bucket: &BucketKey) -> Option<u32> {
        let number = self.of_keys.remove(bucket)?;
        if let Some(key) = self.keys.get_mut(number as usize) {
            *key = None;
        }
        Some(number)
    }
}

/// Reads and changes the shares of keys.
pub struct KeyShareMaps {
    keys: KernelHashMap<MapData, InMap<BucketKey>, InMap<u64>>,
    shares: MappedArray<MapKeyShare>,
    wanting: KernelHashMap<MapData, InMap<BucketKey>, InMap<u64>>,
    /// `None`: must be read from the map.
    numbers: Mutex<Option<Numbers>>,
}

impl KeyShareMaps {
    pub(super) fn new(
        mut open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
    ) -> Result<Self, DatapathError> {
        let keys = open(OWNERS)?.try_into().map_err(error(OWNERS))?;
        let shares = open(OWNER_SHARES)?.try_into();
        let wanting = open(WANTING)?.try_into().map_err(error(WANTING))?;
        Ok(Self {
            keys,
            shares: MappedArray::new(shares.map_err(error(OWNER_SHARES))?)?,
            wanting,
            numbers: Mutex::new(None),
        })
    }

    pub(super) fn maps(&self) -> [(&'static str, &MapData); 3] {
        [
            (OWNERS, self.keys.map()),
            (OWNER_SHARES, self.shares.map()),
            (WANTING, self.wanting.map()),
        ]
    }

    /// Calls `show` for all keys with their own shares, in the order of their numbers; not at one moment. `show`
    /// must not use these maps.
    pub fn each(
        &self,
        mut show: impl FnMut(u32, &BucketKey, KeyShare),
    ) -> Result<(), DatapathError> {
        self.with_numbers(|numbers| {
            for (number, key) in (0..).zip(&numbers.keys) {
                if let Some(key) = key
                    && let Some(share) = self.shares.get(number)
                {
                    show(number, key, share.get());
                }
            }
            Ok(())
        })
    }

    /// The numbers of keys' shares; `None`: the key has no share of its own.
    pub fn numbers_of<'b>(
        &self,
        buckets: impl Iterator<Item = &'b BucketKey>,
    ) -> Result<Vec<Option<u32>>, DatapathError> {
        self.with_numbers(|numbers| {
            let numbers = buckets.map(|bucket| numbers.of_keys.get(bucket).copied());
            Ok(numbers.collect())
        })
    }

    /// A key's share; `None`: the key has no share of its own.
    pub fn get(&self, bucket: &BucketKey) -> Result<Option<KeyShare>, DatapathError> {
        self.with_numbers(|numbers| {
            let number = numbers.of_keys.get(bucket);
            let share = number.and_then(|number| self.shares.get(*number));
            Ok(share.map(MapKeyShare::get))
        })
    }

    /// Sets the shares of keys; ignores the field `wanted`. Running programs may still use the old shares.
    ///
    /// # Errors
    ///
    /// There is no room for all, or the kernel refuses: some are set.
    pub fn set(&self, shares: &[(BucketKey, KeyShare)]) -> Result<(), DatapathError> {
        self.with_numbers(|numbers| {
            let (mut keys, mut given) = (Vec::new(), Vec::new());
            let mut has_room = true;
            for (bucket, share) in shares {
                if let Some(number) = numbers.of_keys.get(bucket) {
                    if let Some(entry) = self.shares.get(*number) {
                        entry.set(share);
                    }
                    continue;
                }
                let number = numbers.free.pop();
                let entry = number.and_then(|number| Some((number, self.shares.get(number)?)));
                let Some((number, entry)) = entry else {
                    has_room = false;
                    continue;
                };
                entry.set(share);
                entry.wanted.store(0, Ordering::Relaxed);
                numbers.give(*bucket, number);
                keys.push(InMap(*bucket));
                given.push(InMap(u64::from(number)));
            }
            hash::write(&self.keys, &keys, &given).map_err(error(OWNERS))?;
            if has_room {
                Ok(())
            } else {
                Err(DatapathError::NoRoomForShare(self.shares.count()))
            }
        })
    }

    /// Takes the shares of keys, if they have any, and returns once no program uses them.
    pub fn remove(&self, buckets: &[BucketKey]) -> Result<(), DatapathError> {
        self.with_numbers(|numbers| {
            let mut freed = Vec::new();
            for bucket in buckets {
                if let Some(number) = numbers.take(bucket) {
                    hash::remove(&self.keys, *bucket).map_err(error(OWNERS))?;
                    freed.push(number);
                }
            }
            if !freed.is_empty() {
                wait_for_running_programs()?;
            }
            numbers.free.append(&mut freed);
            Ok(())
        })
    }

    pub(in crate::kernel) fn forget_limit(&self, limit: LimitId) -> Result<(), DatapathError> {
        let mut of_limit = Vec::new();
        self.each(|_, bucket, _| {
            if bucket.limit == limit.0 {
                of_limit.push(*bucket);
            }
        })?;
        self.remove(&of_limit)
    }

    /// Removes and returns the keys with refused packets and no share, each with the number of its refused packets,
    /// most refused first.
    pub fn take_wanting(&self) -> Result<Vec<(BucketKey, u64)>, DatapathError> {
        let mut wanting = hash::take(&self.wanting).map_err(error(WANTING))?;
        wanting.sort_unstable_by_key(|(_, refused)| std::cmp::Reverse(*refused));
        Ok(wanting)
    }

    /// Reads the keys of shares again: another `KeyShareMaps` over the same maps may have changed them.
    pub(in crate::kernel) fn read_again(&self) {
        *self.numbers() = None;
    }

    fn with_numbers<T>(
        &self,
        then: impl FnOnce(&mut Numbers) -> Result<T, DatapathError>,
    ) -> Result<T, DatapathError> {
        let mut kept = self.numbers();
        let mut numbers = match kept.take() {
            Some(numbers) => numbers,
            None => self.read()?,
        };
        // After an error, the numbers are read again.
        let done = then(&mut numbers)?;
        *kept = Some(numbers);
        Ok(done)
    }

    fn read(&self) -> Result<Numbers, DatapathError> {
        let read = hash::read(&self.keys).map_err(error(OWNERS))?;
        let numbered = read.into_iter().filter_map(|(bucket, number)| {
            let number = u32::try_from(number).ok()?;
            Some((bucket, number))
        });
        // Running programs may still use numbers that an interrupted removal has freed.
        wait_for_running_programs()?;
        let mut numbers = Numbers {
            of_keys: HashMap::new(),
            keys: vec![None; self.shares.count() as usize],
            free: Vec::new(),
        };
        for (bucket, number) in numbered {
            numbers.give(bucket, number);
        }
        let free = (0..).zip(&numbers.keys);
        let free = free.filter_map(|(number, key)| key.is_none().then_some(number));
        numbers.free = free.collect();
        Ok(numbers)
    }

    fn numbers(&self) -> MutexGuard<'_, Option<Numbers>> {
        // After a panic, the numbers are read again.
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
