//! The means of a host to move parts of budgets: the kernel has them, and a model in tests.

use limiter_common::{
    limit::LimitId,
    owner::BucketKey,
    strategy::gcra::{Parts, ShareWord},
};
use limiter_datapath::kernel::{Datapath, DatapathError, MovingBucket, Shares, monotonic_now};

/// A bucket whose share moves, which leaves it as full as it was. Credits are in ticks.
pub(super) trait Lever {
    /// Returns what a token costs at the whole, in ticks.
    fn whole(&self) -> u64;
    /// Returns the share in force.
    fn share(&self) -> Result<Parts, DatapathError>;
    /// Puts a share in force until a time, in nanoseconds.
    fn set(&self, share: Parts, until_ns: u64) -> Result<(), DatapathError>;
    /// Returns once no packet is decided by a share of before.
    fn wait(&self) -> Result<(), DatapathError>;
    /// Returns what the bucket holds.
    fn credit(&self) -> Result<u64, DatapathError>;
    /// Takes from the bucket, even what it does not hold.
    fn charge(&self, ticks: u64) -> Result<(), DatapathError>;
    /// Gives to the bucket, until it is full.
    fn give(&self, ticks: u64) -> Result<(), DatapathError>;
}

/// A host.
pub(super) trait Host {
    /// A limit's bucket.
    type Lever<'h>: Lever
    where
        Self: 'h;

    /// Returns the time by the clock of packets.
    fn now_ns(&self) -> u64;

    /// Returns a limit's bucket; `None`: nothing is limited yet.
    fn lever(&self, limit: LimitId) -> Option<Self::Lever<'_>>;

    /// Returns how many tokens packets have wanted of a limit, since some time.
    fn wanted(&self, limit: LimitId) -> Result<u64, DatapathError>;
}

/// The one bucket that a host has of a limit.
pub(super) struct HostBucket<'d> {
    limit: LimitId,
    shares: Shares<'d>,
    bucket: MovingBucket<'d>,
}

impl Lever for HostBucket<'_> {
    fn whole(&self) -> u64 {
        self.bucket.whole()
    }

    fn share(&self) -> Result<Parts, DatapathError> {
        self.bucket.share()
    }

    fn set(&self, share: Parts, until_ns: u64) -> Result<(), DatapathError> {
        self.shares
            .set_limit(self.limit, ShareWord::new(share, until_ns))
    }

    fn wait(&self) -> Result<(), DatapathError> {
        self.shares.wait()
    }

    fn credit(&self) -> Result<u64, DatapathError> {
        self.bucket.credit()
    }

    fn charge(&self, ticks: u64) -> Result<(), DatapathError> {
        self.bucket.charge(ticks)
    }

    fn give(&self, ticks: u64) -> Result<(), DatapathError> {
        self.bucket.give(ticks)
    }
}

impl Host for Datapath {
    type Lever<'h> = HostBucket<'h>;

    fn now_ns(&self) -> u64 {
        monotonic_now()
    }

    fn lever(&self, limit: LimitId) -> Option<HostBucket<'_>> {
        let shares = self.shares()?;
        Some(HostBucket {
            limit,
            shares,
            bucket: shares.bucket(&BucketKey::of_host(limit))?,
        })
    }

    fn wanted(&self, limit: LimitId) -> Result<u64, DatapathError> {
        let of_cpus = self.limit_traffic_by_cpu(limit)?;
        let wanted = of_cpus
            .iter()
            .map(|traffic| (traffic.passed.packets).wrapping_add(traffic.dropped.packets));
        Ok(wanted.fold(0, u64::wrapping_add))
    }
}
