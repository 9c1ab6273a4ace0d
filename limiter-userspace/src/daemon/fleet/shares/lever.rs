//! How a host changes shares: in the kernel, or in a model for tests.

use limiter_common::{
    key::BucketKey,
    limit::LimitId,
    strategy::gcra::{KeyShare, Parts, ShareWord},
};
use limiter_datapath::kernel::{Datapath, DatapathError, MovingBucket, Shares, monotonic_now};

/// A bucket with a changing share, which keeps its fill level. Credits are in ticks.
pub(super) trait Lever {
    /// Returns the cost of a token at the whole share, in ticks.
    fn whole(&self) -> u64;
    /// Returns how many tokens come back in `ns` nanoseconds at the whole share.
    fn tokens_in(&self, ns: u64) -> u64;
    /// Returns the bucket's credit.
    fn credit(&self) -> Result<u64, DatapathError>;
    /// Takes from the bucket, even more than it has.
    fn charge(&self, ticks: u64) -> Result<(), DatapathError>;
    /// Adds to the bucket, until it is full.
    fn give(&self, ticks: u64) -> Result<(), DatapathError>;
}

/// A host that enforces limits.
pub(super) trait Host: Copy {
    /// An owner's bucket.
    type Lever: Lever;

    /// Returns the time by the clock of packets.
    fn now_ns(self) -> u64;

    /// Sets the permanent share of all owners of a limit without a word of their own.
    fn set_limit(self, limit: LimitId, share: Parts) -> Result<(), DatapathError>;

    /// Takes the owners without a word of their own that had packets refused, `most` at most.
    fn wanting(self, most: usize) -> Result<Vec<BucketKey>, DatapathError>;

    /// Passes the owners with their own words to `show`, in the order of their numbers. A number is below
    /// `MOST_KEYS`, and stays the same while the owner has its word. Do not call the host meanwhile.
    fn each_key_share(
        self,
        show: impl FnMut(u32, &BucketKey, KeyShare),
    ) -> Result<(), DatapathError>;

    /// Returns the numbers of owners' words; `None`: the owner has none.
    fn numbers_of<'b>(
        self,
        owners: impl Iterator<Item = &'b BucketKey>,
    ) -> Result<Vec<Option<u32>>, DatapathError>;

    /// Sets owners' words. Running programs may still use the earlier ones. Ignores `KeyShare::wanted`.
    fn set_key_shares(self, owners: &[(BucketKey, KeyShare)]) -> Result<(), DatapathError>;

    /// Removes owners' words.
    fn remove_key_shares(self, owners: &[BucketKey]) -> Result<(), DatapathError>;

    /// Waits until no running program uses an earlier word.
    fn wait(self) -> Result<(), DatapathError>;

    /// Returns an owner's bucket; `None`: its limit is no longer shared.
    fn lever(self, owner: &BucketKey) -> Option<Self::Lever>;
}

/// The kernel's shares.
#[derive(Clone, Copy)]
pub(super) struct Kernel<'d>(Shares<'d>);

impl<'d> Kernel<'d> {
    /// Returns the kernel's shares; `None`: there is no limit yet.
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

    fn each_key_share(
        self,
        show: impl FnMut(u32, &BucketKey, KeyShare),
    ) -> Result<(), DatapathError> {
        self.0.each_key_share(show)
    }

    fn numbers_of<'b>(
        self,
        owners: impl Iterator<Item = &'b BucketKey>,
    ) -> Result<Vec<Option<u32>>, DatapathError> {
        self.0.numbers_of(owners)
    }

    fn set_key_shares(self, owners: &[(BucketKey, KeyShare)]) -> Result<(), DatapathError> {
        self.0.set_key_shares(owners)
    }

    fn remove_key_shares(self, owners: &[BucketKey]) -> Result<(), DatapathError> {
        self.0.remove_key_shares(owners)
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
