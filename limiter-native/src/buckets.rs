//! Buckets by exact keys, over plain memory.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, hash_map::Entry},
};

use limiter_common::{
    bucket::{Bucket, BucketTable, Search, Swap},
    decide::DecisionSteps,
    key::BucketKey,
    table::{self, Line, unit_of},
};
use limiter_policy::policy::Units;

/// Buckets without a capacity.
#[derive(Clone, Debug, Default)]
pub struct MemoryBuckets {
    buckets: RefCell<HashMap<BucketKey, OneBucket>>,
    units: Units,
}

/// The handle of a looked-up bucket.
#[derive(Clone, Copy, Debug, Default)]
pub struct BucketLocation {
    /// The bucket's key.
    pub key: BucketKey,
    /// The number of the unit that the bucket should count in.
    unit: u32,
}

impl MemoryBuckets {
    /// Keeps the buckets under a policy with these units, which include the units of earlier
    /// policies.
    #[cfg(feature = "testing")]
    pub fn set_units(&mut self, units: Units) {
        self.units = units;
    }

    /// The stored bucket, in any unit; `None`: there is none.
    #[must_use]
    pub fn bucket(&self, key: &BucketKey) -> Option<Bucket> {
        let buckets = self.buckets.borrow();
        buckets.get(key).map(OneBucket::content)
    }

    /// Every bucket and its state.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn into_states(self) -> HashMap<BucketKey, u64> {
        let buckets = self.buckets.into_inner().into_iter();
        buckets
            .map(|(key, bucket)| (key, bucket.content().state))
            .collect()
    }
}

impl BucketTable for MemoryBuckets {
    type Location = BucketLocation;

    fn find(
        &self,
        key: &BucketKey,
        unit: u32,
        _: &mut Search,
        location: &mut BucketLocation,
    ) -> u64 {
        *location = BucketLocation { key: *key, unit };
        self.read(location)
    }

    fn find_part(
        &self,
        bucket: &BucketLocation,
        number: u64,
        unit: u32,
        location: &mut BucketLocation,
    ) -> u64 {
        let key = bucket.key.of_part(number);
        *location = BucketLocation { key, unit };
        self.read(location)
    }

    fn read(&self, location: &mut BucketLocation) -> u64 {
        match self.buckets.borrow().get(&location.key) {
            Some(bucket) => table::read(&bucket, location.unit.into()).1,
            None => 0,
        }
    }

    fn swap(&self, location: &BucketLocation, now_ns: u64, seen: u64, wanted: u64) -> Swap {
        let BucketLocation { key, unit } = *location;
        let fingerprint = unit.into();
        match self.buckets.borrow_mut().entry(key) {
            Entry::Vacant(_) if seen != 0 => Swap::Changed,
            Entry::Vacant(vacant) => {
                vacant.insert(OneBucket::new(unit, wanted));
                Swap::Stored
            }
            Entry::Occupied(bucket) => {
                let bucket = bucket.get();
                if bucket.fingerprint.get() == fingerprint {
                    table::swap_in_line(&bucket, 0, fingerprint, seen, wanted)
                } else {
                    table::exchange(&bucket, &self.units, fingerprint, now_ns);
                    Swap::Changed
                }
            }
        }
    }
}

impl DecisionSteps for MemoryBuckets {}

/// A line of one way, with the number of the bucket's unit as the fingerprint.
#[derive(Clone, Debug)]
struct OneBucket {
    fingerprint: Cell<u64>,
    state: Cell<u64>,
}

impl OneBucket {
    fn new(unit: u32, state: u64) -> Self {
        Self {
            fingerprint: Cell::new(unit.into()),
            state: Cell::new(state),
        }
    }

    const fn content(&self) -> Bucket {
        Bucket {
            unit: unit_of(self.fingerprint.get()),
            state: self.state.get(),
        }
    }
}

impl Line for &OneBucket {
    const WAYS: usize = 1;

    fn fingerprint(&self, _: usize) -> u64 {
        self.fingerprint.get()
    }

    fn state(&self, _: usize) -> u64 {
        self.state.get()
    }

    fn set_fingerprint(&self, _: usize, fingerprint: u64) {
        self.fingerprint.set(fingerprint);
    }

    fn set_state(&self, _: usize, state: u64) {
        self.state.set(state);
    }

    fn compare_and_swap_state(&self, _: usize, seen: u64, new: u64) -> bool {
        let swapped = self.state.get() == seen;
        if swapped {
            self.state.set(new);
        }
        swapped
    }
}
