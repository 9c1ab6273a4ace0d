//! The decision core's seams over plain memory: what the kernel does, without a kernel.

mod line;
mod offenders;
mod table;

use std::{cell::RefCell, collections::HashMap};

use limiter_common::{
    bucket::{BucketKey, BucketStore, Search, Updated},
    charge::{Charge, Workspace},
    decide::{Clock, Verdict, decide},
    gcra::Change,
    offender::OffenderStore,
    packet::{Frame, Headers},
    policy::Tables,
};

pub use self::{line::AtomicLine, offenders::MemoryOffenders, table::MemoryTable};

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
    type Found = BucketKey;

    fn find(
        &self,
        key: &BucketKey,
        _unit: u32,
        _search: &mut Search,
        found: &mut BucketKey,
    ) -> u64 {
        *found = *key;
        self.state(key).unwrap_or(0)
    }

    fn spend(&self, charge: &Charge<BucketKey>) -> Updated {
        self.change(charge.found, Change::Spend(&charge.spend))
    }

    fn refund(&self, charge: &Charge<BucketKey>) -> Updated {
        self.change(charge.found, Change::Refund(&charge.spend))
    }
}

impl MemoryBuckets {
    fn change(&self, key: BucketKey, change: Change) -> Updated {
        let seen = self.state(&key);
        if seen.is_none() && change.is_refund() {
            return Updated::Stored;
        }
        match change.apply(seen.unwrap_or(0)) {
            Ok(wanted) => {
                self.0.borrow_mut().insert(key, wanted);
                Updated::Stored
            }
            Err(_) => Updated::Declined,
        }
    }
}

/// Decides as [`decide()`] does, on one frame that arrives at `now_ns`, with a workspace of its own.
/// Whoever decides on many keeps one.
pub fn decide_once<H: Headers, T: Tables, B: BucketStore, O: OffenderStore>(
    frame: &H,
    now_ns: u64,
    tables: &T,
    buckets: &B,
    offenders: &O,
) -> Verdict {
    let clock = FixedClock(now_ns);
    let mut workspace = Workspace::default();
    decide(frame, &clock, tables, buckets, offenders, &mut workspace)
}
