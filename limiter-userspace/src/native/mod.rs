//! The decision core's seams over plain memory: what the kernel does, without a kernel.

mod offenders;
mod table;

use std::{cell::RefCell, collections::HashMap};

use limiter_common::{
    bucket::{BucketKey, BucketStore, Updated},
    charge::Charge,
    decide::Clock,
    gcra::Change,
    packet::Frame,
};

pub use self::{offenders::MemoryOffenders, table::MemoryTable};

/// A frame in memory.
#[derive(Clone, Copy, Debug)]
pub struct BytesFrame<'a>(pub &'a [u8]);

impl Frame for BytesFrame<'_> {
    fn length(&self) -> usize {
        self.0.len()
    }

    fn load<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        self.0.get(offset..)?.first_chunk().copied()
    }
}

/// A clock that stands at one time, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct FixedClock(pub u64);

impl Clock for FixedClock {
    fn now(&self) -> u64 {
        self.0
    }
}

/// Buckets without a capacity.
#[derive(Clone, Debug, Default)]
pub struct MemoryBuckets(RefCell<HashMap<BucketKey, u64>>);

impl MemoryBuckets {
    /// The state of a bucket; `None`: there is no such bucket.
    #[must_use]
    pub fn state(&self, key: &BucketKey) -> Option<u64> {
        self.0.borrow().get(key).copied()
    }

    /// Every bucket and its state.
    #[must_use]
    pub fn into_states(self) -> HashMap<BucketKey, u64> {
        self.0.into_inner()
    }
}

impl BucketStore for MemoryBuckets {
    fn locate(&self, _charge: &mut Charge) {}

    fn read(&self, charge: &Charge) -> Option<u64> {
        self.state(&charge.key)
    }

    fn spend(&self, charge: &Charge) -> Updated {
        self.change(charge.key, &charge.spend)
    }

    fn refund(&self, charge: &Charge) -> Updated {
        self.change(charge.key, &charge.spend.undone())
    }
}

impl MemoryBuckets {
    fn change(&self, key: BucketKey, change: &Change) -> Updated {
        let seen = self.state(&key);
        if seen.is_none() && change.is_refund() {
            return Updated::Stored;
        }
        match change.apply(seen) {
            Ok(wanted) => {
                self.0.borrow_mut().insert(key, wanted);
                Updated::Stored
            }
            Err(_) => Updated::Declined,
        }
    }
}
