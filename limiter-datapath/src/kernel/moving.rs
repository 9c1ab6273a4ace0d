//! The bucket of a limit whose rate moves, and the moving of tokens with the rate.
//!
//! A rate that moves leaves a bucket as full as it was ([`CurrentRate`]), so it moves tokens, too: a faster
//! rate makes some, and a slower one takes some. Whoever may make none charges the bucket for them.

use limiter_common::{
    limit::LimitId,
    owner::BucketKey,
    policy::LimitEntry,
    strategy::{Parameters, gcra::CurrentRate},
};

use super::{
    BucketMaps, Datapath, DatapathError, grace::wait_for_running_programs, monotonic_now,
    reputation::RateMap,
};

/// The bucket that all packets are charged to by a limit whose rate moves.
pub struct MovingBucket<'d> {
    datapath: &'d Datapath,
    entry: &'d LimitEntry,
    /// At the floor.
    parameters: &'d Parameters,
    rates: &'d RateMap,
    /// `None`: no packet was ever charged.
    buckets: Option<&'d BucketMaps>,
}

impl Datapath {
    /// Returns the bucket of a limit that has one for the whole host and whose rate moves; `None`: there
    /// is no such limit, or nothing is limited yet.
    #[must_use]
    pub fn moving_bucket(&self, limit: LimitId) -> Option<MovingBucket<'_>> {
        let limits = self.policy.limits.iter().zip(&self.policy.rates);
        let mut limits = (0..).zip(limits);
        let (index, (entry, parameters)) = limits.find(|(_, (entry, _))| entry.id == limit.0)?;
        if !self.policy.shape.is_automatic(index) {
            return None;
        }
        Some(MovingBucket {
            datapath: self,
            entry,
            parameters,
            rates: self.reputation()?.rates(),
            buckets: self.kept.of_host(),
        })
    }
}

impl MovingBucket<'_> {
    /// Returns the emission interval in force, in nanoseconds.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn interval(&self) -> Result<u64, DatapathError> {
        let rate = self.rates.get(LimitId(self.entry.id))?;
        let of_floor = self.parameters.gcra.emission_interval;
        Ok(self
            .entry
            .interval_in_force(rate, of_floor, monotonic_now()))
    }

    /// Puts an emission interval in force until a time on the monotonic clock, both in nanoseconds. Programs
    /// that run may use the one before.
    ///
    /// # Errors
    ///
    /// The kernel refuses: the one before stays.
    pub fn set(&self, interval_ns: u64, until_ns: u64) -> Result<(), DatapathError> {
        let rate = CurrentRate::new(interval_ns, until_ns);
        self.rates.set(LimitId(self.entry.id), rate)
    }

    /// Returns once no program uses an interval of before.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn wait(&self) -> Result<(), DatapathError> {
        wait_for_running_programs()
    }

    /// Returns what the bucket holds now, in nanoseconds: with the emission interval in force, that of so
    /// many tokens.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn credit(&self) -> Result<u64, DatapathError> {
        let now_ns = monotonic_now();
        let (key, units) = (self.key(), &self.datapath.policy.units);
        let full_at = match self.buckets {
            Some(buckets) => buckets.state_of(&key, self.parameters, units, now_ns)?,
            None => 0,
        };
        let debt = full_at.saturating_sub(now_ns);
        Ok(self.parameters.gcra.burst_offset.saturating_sub(debt))
    }

    /// Takes so many nanoseconds' worth of tokens, even those that the bucket does not hold.
    ///
    /// # Errors
    ///
    /// The kernel refuses: nothing was taken.
    pub fn charge(&self, ns: u64) -> Result<(), DatapathError> {
        self.order(false, ns)
    }

    /// Gives so many nanoseconds' worth of tokens, at most until the bucket is full.
    ///
    /// # Errors
    ///
    /// The kernel refuses: nothing was given.
    pub fn give(&self, ns: u64) -> Result<(), DatapathError> {
        self.order(true, ns)
    }

    fn order(&self, is_given: bool, ns: u64) -> Result<(), DatapathError> {
        let Some(buckets) = self.buckets.filter(|_| ns > 0) else {
            return Ok(());
        };
        let at = (
            self.parameters,
            &self.datapath.policy.units,
            monotonic_now(),
        );
        buckets.move_ticks(is_given, ns, &self.key(), at)
    }

    const fn key(&self) -> BucketKey {
        BucketKey::of_host(LimitId(self.entry.id))
    }
}
