//! Buckets by exact keys, over plain memory.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, hash_map::Entry},
};

use limiter_common::{
    bucket::{Bucket, BucketStore, Search, Updated},
    charge::Charge,
    owner::BucketKey,
    strategy::Change,
    table::{self, AGAIN, IN_ANOTHER_UNIT, Line, MISSING, unit_of},
};
use limiter_policy::policy::Units;

/// Buckets without a capacity.
#[derive(Clone, Debug, Default)]
pub struct MemoryBuckets {
    buckets: RefCell<HashMap<BucketKey, OneBucket>>,
    units: Units,
}

/// A bucket that was looked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct FoundBucket {
    /// Which it is.
    pub key: BucketKey,
    /// The number of the unit that it is to count in.
    unit: u32,
}

impl MemoryBuckets {
    /// Goes on with the same buckets under a policy that has these units, those of the policies
    /// before included.
    #[cfg(feature = "testing")]
    pub fn set_units(&mut self, units: Units) {
        self.units = units;
    }

    /// What is stored of a bucket, in whatever unit; `None`: there is none.
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

impl BucketStore for MemoryBuckets {
    type Found = FoundBucket;

    fn find(&self, key: &BucketKey, unit: u32, _: &mut Search, found: &mut FoundBucket) -> u64 {
        *found = FoundBucket { key: *key, unit };
        self.read(found)
    }

    fn read(&self, found: &FoundBucket) -> u64 {
        match self.buckets.borrow().get(&found.key) {
            Some(bucket) => table::read(&bucket, found.unit.into()).1,
            None => 0,
        }
    }

    fn find_stamp(
        &self,
        bucket: &FoundBucket,
        number: u64,
        unit: u32,
        found: &mut FoundBucket,
    ) -> u64 {
        let key = bucket.key.of_stamp(number);
        *found = FoundBucket { key, unit };
        self.read(found)
    }

    fn spend(&self, charge: &Charge<FoundBucket>) -> Updated {
        self.update(charge, Change::Spend(&charge.spend))
    }

    fn refund(&self, charge: &Charge<FoundBucket>) -> Updated {
        self.update(charge, Change::Refund(&charge.spend))
    }
}

impl MemoryBuckets {
    fn update(&self, charge: &Charge<FoundBucket>, wanted: Change) -> Updated {
        let FoundBucket { key, unit } = charge.found;
        let name = unit.into();
        table::update(
            || match self.buckets.borrow().get(&key) {
                Some(bucket) => table::change(&bucket, name, wanted),
                None => MISSING,
            },
            || self.insert(charge.found, wanted),
            || match self.buckets.borrow().get(&key) {
                Some(bucket) => table::exchange(&bucket, &self.units, name, charge.now_ns, wanted),
                None => AGAIN,
            },
        )
    }

    /// Makes the bucket if it is not there: a step of [`table::update`].
    fn insert(&self, FoundBucket { key, unit }: FoundBucket, wanted: Change) -> u32 {
        if wanted.is_refund() {
            // The bucket is gone, and so is its debt.
            return Updated::Stored as u32;
        }
        let decision = wanted.apply(0);
        if !decision.passes() {
            return Updated::Declined as u32;
        }
        match self.buckets.borrow_mut().entry(key) {
            Entry::Occupied(_) => IN_ANOTHER_UNIT,
            Entry::Vacant(place) => {
                place.insert(OneBucket::new(unit, decision.state));
                Updated::Stored as u32
            }
        }
    }
}

/// A line of one way, in which the number of its unit names the bucket.
#[derive(Clone, Debug)]
struct OneBucket {
    name: Cell<u64>,
    state: Cell<u64>,
}

impl OneBucket {
    fn new(unit: u32, state: u64) -> Self {
        Self {
            name: Cell::new(unit.into()),
            state: Cell::new(state),
        }
    }

    const fn content(&self) -> Bucket {
        Bucket {
            unit: unit_of(self.name.get()),
            state: self.state.get(),
        }
    }
}

impl Line for &OneBucket {
    const WAYS: usize = 1;

    fn name(&self, _: usize) -> u64 {
        self.name.get()
    }

    fn state(&self, _: usize) -> u64 {
        self.state.get()
    }

    fn set_name(&self, _: usize, name: u64) {
        self.name.set(name);
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
