//! The pressure on sieves, measured by arriving traffic, and given as a number of lists to reject.
//!
//! Passing traffic would be the wrong measure: a sieve's own drops would end the pressure that it answers, and let
//! the flood in again five times a second.
//!
//! It is computed in 128-bit integers: with Traffic Server's 32-bit floats 21 000 of 22 000 (ten lists, 90 %) is 5,
//! not 6.

mod level;
mod meter;
mod threshold;

use std::collections::BTreeMap;

use limiter_common::{limit::LimitId, sieve::SieveTraffic};
use limiter_policy::policy::{Percentage, Policy, SieveUse};

use self::threshold::{Counter, LoadSource};
pub use self::{
    level::{Load, pressure, rejected_from},
    meter::{EVERY, Growth, Meter, WINDOW},
    threshold::Threshold,
};

/// How long a pressure holds, in nanoseconds: without a daemon that measures it, sieves stop rejecting soon.
pub const HOLDS_NS: u64 = 1_000_000_000;

/// Measures the pressure of every use of a sieve in a policy; the default policy has no sieves.
#[derive(Clone, Debug, Default)]
pub struct Gauge {
    uses: Vec<Use>,
    meters: BTreeMap<Counter, Meter>,
}

/// The pressure of one use of a sieve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsePressure {
    /// The use.
    pub used: SieveUse,
    /// The index of its pressure and counters.
    pub index: u32,
    /// The measure of the load; `None`: the limit is off and counts nothing.
    pub threshold: Option<Threshold>,
    /// The used part of the threshold; `None`: unknown so far.
    pub load: Option<Load>,
    /// The number of rejected lists; `None`: there is no pressure, and sources are not scored.
    pub pressure: Option<u8>,
}

#[derive(Clone, Debug)]
struct Use {
    used: SieveUse,
    index: u32,
    threshold: Option<Threshold>,
    percentage: Percentage,
    list_count: u8,
}

impl Gauge {
    /// Returns the gauge of a policy; the counters are indexed by its limits' interned ids.
    #[must_use]
    pub fn new(policy: &Policy) -> Self {
        let uses: Vec<_> = policy
            .sieve_uses()
            .into_iter()
            .filter_map(|used| {
                let sieve = policy.sieves.get(used.sieve?)?;
                Some(Use {
                    used,
                    index: used.index()?,
                    threshold: Threshold::of(policy, sieve, used),
                    percentage: sieve.percentage,
                    list_count: sieve.buckets,
                })
            })
            .collect();
        let thresholds = uses.iter().filter_map(|used| used.threshold);
        let counters = thresholds.filter_map(|threshold| threshold.counter());
        let meters = counters.map(|counter| (counter, Meter::default()));
        Self {
            meters: meters.collect(),
            uses,
        }
    }

    /// Returns whether there is nothing to measure: the policy uses no sieve.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.uses.is_empty()
    }

    /// The uses of sieves, in the order of their measurement.
    pub fn uses(&self) -> impl Iterator<Item = SieveUse> {
        self.uses.iter().map(|used| used.used)
    }

    /// Measures each use by the arrivals until `now_ns`, in nanoseconds of any clock, or by the open connections.
    ///
    /// # Errors
    ///
    /// If `read` cannot read the counters of an index, or `open` the number of connections that a limit counts.
    pub fn measure<E>(
        &mut self,
        now_ns: u64,
        mut read: impl FnMut(u32) -> Result<SieveTraffic, E>,
        open: impl Fn(LimitId) -> Result<u64, E>,
    ) -> Result<Vec<UsePressure>, E> {
        let mut growths = BTreeMap::new();
        for (counter, meter) in &mut self.meters {
            let arrived = read(counter.index)?.arrived;
            growths.insert(*counter, meter.sample(now_ns, counter.of(&arrived)));
        }
        let measured = self.uses.iter().map(|used| {
            let load = match used.threshold {
                Some(threshold) => match threshold.gauged {
                    LoadSource::Arriving { counter, period_ns } => {
                        let growth = growths.get(&counter).copied().flatten();
                        growth.map(|growth| threshold.load_of(growth, period_ns))
                    }
                    LoadSource::Open(limit) => Some(threshold.load_by(open(limit)?)),
                },
                None => None,
            };
            Ok(UsePressure {
                used: used.used,
                index: used.index,
                threshold: used.threshold,
                load,
                pressure: load.and_then(|load| pressure(load, used.percentage, used.list_count)),
            })
        });
        measured.collect()
    }
}

#[cfg(test)]
mod tests;
