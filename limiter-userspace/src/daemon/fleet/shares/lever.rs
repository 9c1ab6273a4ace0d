//! The means of a host to move parts of budgets: the kernel has them, and a model in tests.

use limiter_common::limit::LimitId;
use limiter_datapath::kernel::{Datapath, DatapathError, MovingBucket, monotonic_now};

/// A bucket whose emission interval moves, which leaves it as full as it was. Times and credits are in
/// nanoseconds.
pub(super) trait Lever {
    /// Returns the emission interval in force.
    fn interval(&self) -> Result<u64, DatapathError>;
    /// Puts an interval in force until a time.
    fn set(&self, interval_ns: u64, until_ns: u64) -> Result<(), DatapathError>;
    /// Returns once no packet is decided by an interval of before.
    fn wait(&self) -> Result<(), DatapathError>;
    /// Returns what the bucket holds.
    fn credit(&self) -> Result<u64, DatapathError>;
    /// Takes from the bucket, even what it does not hold.
    fn charge(&self, ns: u64) -> Result<(), DatapathError>;
    /// Gives to the bucket, until it is full.
    fn give(&self, ns: u64) -> Result<(), DatapathError>;
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

impl Lever for MovingBucket<'_> {
    fn interval(&self) -> Result<u64, DatapathError> {
        self.interval()
    }

    fn set(&self, interval_ns: u64, until_ns: u64) -> Result<(), DatapathError> {
        self.set(interval_ns, until_ns)
    }

    fn wait(&self) -> Result<(), DatapathError> {
        self.wait()
    }

    fn credit(&self) -> Result<u64, DatapathError> {
        self.credit()
    }

    fn charge(&self, ns: u64) -> Result<(), DatapathError> {
        self.charge(ns)
    }

    fn give(&self, ns: u64) -> Result<(), DatapathError> {
        self.give(ns)
    }
}

impl Host for Datapath {
    type Lever<'h> = MovingBucket<'h>;

    fn now_ns(&self) -> u64 {
        monotonic_now()
    }

    fn lever(&self, limit: LimitId) -> Option<MovingBucket<'_>> {
        self.moving_bucket(limit)
    }

    fn wanted(&self, limit: LimitId) -> Result<u64, DatapathError> {
        let of_cpus = self.limit_traffic_by_cpu(limit)?;
        let wanted = of_cpus
            .iter()
            .map(|traffic| (traffic.passed.packets).wrapping_add(traffic.dropped.packets));
        Ok(wanted.fold(0, u64::wrapping_add))
    }
}
