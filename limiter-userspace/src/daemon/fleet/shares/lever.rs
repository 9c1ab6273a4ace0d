//! The means of a host to move parts of budgets: the kernel has them, and a model in tests.

use limiter_common::{
    limit::LimitId,
    owner::BucketKey,
    strategy::gcra::{OwnerShare, Parts, ShareWord},
};
use limiter_datapath::kernel::{Datapath, DatapathError, MovingBucket, Shares, monotonic_now};

/// A bucket whose share moves, which leaves it as full as it was. Credits are in ticks.
pub(super) trait Lever {
    /// Returns what a token costs at the whole, in ticks.
    fn whole(&self) -> u64;
    /// Returns how many tokens of the whole come back in so many nanoseconds.
    fn tokens_in(&self, ns: u64) -> u64;
    /// Returns what the bucket holds.
    fn credit(&self) -> Result<u64, DatapathError>;
    /// Takes from the bucket, even what it does not hold.
    fn charge(&self, ticks: u64) -> Result<(), DatapathError>;
    /// Gives to the bucket, until it is full.
    fn give(&self, ticks: u64) -> Result<(), DatapathError>;
}

/// A host on which something is limited.
pub(super) trait Host: Copy {
    /// An owner's bucket.
    type Lever: Lever;

    /// Returns the time by the clock of packets.
    fn now_ns(self) -> u64;

    /// Gives a share, for good, to all owners of a limit that have none of their own.
    fn set_limit(self, limit: LimitId, share: Parts) -> Result<(), DatapathError>;

    /// Takes out the owners without a share of their own of which packets were refused, at most so many.
    fn wanting(self, most: usize) -> Result<Vec<BucketKey>, DatapathError>;

    /// Shows the owners with a share of their own, in the order of its number, which is below `MOST_OWNERS` and stays the
    /// same for as long as it has one. Nothing else may be asked of the host meanwhile.
    fn each_owner(self, show: impl FnMut(u32, &BucketKey, OwnerShare))
    -> Result<(), DatapathError>;

    /// Returns the numbers of owners' own shares; `None`: it has none.
    fn numbers_of<'b>(
        self,
        owners: impl Iterator<Item = &'b BucketKey>,
    ) -> Result<Vec<Option<u32>>, DatapathError>;

    /// Sets owners' own shares, whatever they want. Packets may be decided by those of before.
    fn set_owners(self, owners: &[(BucketKey, OwnerShare)]) -> Result<(), DatapathError>;

    /// Takes owners' own shares.
    fn remove_owners(self, owners: &[BucketKey]) -> Result<(), DatapathError>;

    /// Returns once no packet is decided by a share of before.
    fn wait(self) -> Result<(), DatapathError>;

    /// Returns an owner's bucket; `None`: its limit is in common no longer.
    fn lever(self, owner: &BucketKey) -> Option<Self::Lever>;
}

/// The kernel's.
#[derive(Clone, Copy)]
pub(super) struct Kernel<'d>(Shares<'d>);

impl<'d> Kernel<'d> {
    /// Returns the kernel's means; `None`: nothing is limited yet.
    pub(super) fn of(datapath: &'d Datapath) -> Option<Self> {
        datapath.shares().map(Self)
    }
}

impl<'d> Host for Kernel<'d> {
    type Lever = MovingBucket<'d>;

    fn now_ns(self) -> u64 {
        monotonic_now()
    }

    fn set_limit(self, limit: LimitId, share: Parts) -> Result<(), DatapathError> {
        self.0.set_limit(limit, ShareWord::forever(share))
    }

    fn wanting(self, most: usize) -> Result<Vec<BucketKey>, DatapathError> {
        self.0.wanting(most)
    }

    fn each_owner(
        self,
        show: impl FnMut(u32, &BucketKey, OwnerShare),
    ) -> Result<(), DatapathError> {
        self.0.each_owner(show)
    }

    fn numbers_of<'b>(
        self,
        owners: impl Iterator<Item = &'b BucketKey>,
    ) -> Result<Vec<Option<u32>>, DatapathError> {
        self.0.numbers_of(owners)
    }

    fn set_owners(self, owners: &[(BucketKey, OwnerShare)]) -> Result<(), DatapathError> {
        self.0.set_owners(owners)
    }

    fn remove_owners(self, owners: &[BucketKey]) -> Result<(), DatapathError> {
        self.0.remove_owners(owners)
    }

    fn wait(self) -> Result<(), DatapathError> {
        self.0.wait()
    }

    fn lever(self, owner: &BucketKey) -> Option<MovingBucket<'d>> {
        self.0.bucket(owner)
    }
}

impl Lever for MovingBucket<'_> {
    fn whole(&self) -> u64 {
        self.whole()
    }

    fn tokens_in(&self, ns: u64) -> u64 {
        self.tokens_in(ns)
    }

    fn credit(&self) -> Result<u64, DatapathError> {
        self.credit()
    }

    fn charge(&self, ticks: u64) -> Result<(), DatapathError> {
        self.charge(ticks)
    }

    fn give(&self, ticks: u64) -> Result<(), DatapathError> {
        self.give(ticks)
    }
}
