//! What a completed handshake takes from a bucket, whatever that holds.

use limiter_common::{
    bucket::{BucketStore as _, Decide, Decided, Ending, Search},
    connection::Toll,
    strategy::Spend,
};

use super::{BucketLocation, MapBuckets, orders::exchange};

/// A toll and where its bucket is.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Due {
    location: BucketLocation,
    charge: Charge,
}

/// What is to be taken.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Charge {
    /// The time, in ticks and in nanoseconds.
    now: u64,
    now_ns: u64,
    /// A token, in ticks.
    increment: u64,
}

impl Due {
    /// Looks for the bucket of a toll.
    #[inline(always)]
    pub(crate) fn find(&mut self, toll: &Toll, now_ns: u64) {
        let mut search = Search::SINGLE;
        let location = &mut self.location;
        MapBuckets::<true>.find(&toll.key, toll.unit, &mut search, location);
        self.charge = Charge {
            now: toll.now,
            now_ns,
            increment: toll.increment,
        };
    }

    /// Takes it. If there is no room for the bucket, or other CPUs win every attempt, nothing is taken.
    #[inline(always)]
    pub(crate) fn take(&mut self) {
        let Self { location, charge } = self;
        let _ = MapBuckets::<true>.update(location, charge.now_ns, charge);
    }
}

impl Decide<BucketLocation> for Charge {
    #[inline(always)]
    fn decide(&mut self, location: &BucketLocation, state: u64) -> Decided {
        // It may exist in another unit, and so look full.
        if state == 0 && exchange(location, self.now_ns) {
            return Decided::leave(state, Ending::Again);
        }
        let spend = Spend::unbounded(self.now, self.increment);
        Decided {
            state: spend.gcra().decide(state).state,
            ending: Ending::Stored,
        }
    }
}
