//! The pressure that sieves are under: measured by what arrives, and told in lists to reject.
//!
//! What arrives, and not what passes: what a sieve drops must not end the pressure that it answers,
//! or the flood would be let in again five times a second.

mod budget;
mod level;
mod meter;

use std::collections::BTreeMap;

use limiter_common::sieve::SieveTraffic;
use limiter_policy::policy::{Percentage, Policy, SieveUse};

use self::budget::Counter;
pub use self::{
    budget::Budget,
    level::{Load, pressure, rejected_from},
    meter::{EVERY, Growth, Meter, WINDOW},
};

/// For how long a pressure holds, in nanoseconds: should nobody measure it any more, nobody is
/// rejected for long.
pub const HOLDS_NS: u64 = 1_000_000_000;

/// Measures the pressure of every use of a sieve in a policy; by default, of one without sieves.
#[derive(Clone, Debug, Default)]
pub struct Gauge {
    uses: Vec<Use>,
    meters: BTreeMap<Counter, Meter>,
}

/// The pressure of one use of a sieve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Which use.
    pub used: SieveUse,
    /// The index of its pressure and counters.
    pub index: u32,
    /// What it is measured by; `None`: a limit that is off, which counts nothing.
    pub budget: Option<Budget>,
    /// What is used of that; `None`: it is not known yet.
    pub load: Option<Load>,
    /// How many lists are rejected; `None`: there is no pressure, and nobody is scored.
    pub pressure: Option<u8>,
}

#[derive(Clone, Debug)]
struct Use {
    used: SieveUse,
    index: u32,
    budget: Option<Budget>,
    percentage: Percentage,
    buckets: u8,
}

impl Gauge {
    /// Of a policy, the limits of which have the interned ids that the counters go by.
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
                    budget: Budget::of(policy, sieve, used),
                    percentage: sieve.percentage,
                    buckets: sieve.buckets,
                })
            })
            .collect();
        let budgets = uses.iter().filter_map(|used| used.budget);
        let meters = budgets.map(|budget| (budget.counter, Meter::default()));
        Self {
            meters: meters.collect(),
            uses,
        }
    }

    /// Whether there is nothing to measure: the policy uses no sieve.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.uses.is_empty()
    }

    /// The uses of sieves, in the order in which they are measured.
    pub fn uses(&self) -> impl Iterator<Item = SieveUse> {
        self.uses.iter().map(|used| used.used)
    }

    /// Measures what has arrived until a time, in nanoseconds of any clock; one for each use.
    ///
    /// # Errors
    ///
    /// When `read` cannot read the counters of an index.
    pub fn measure<E>(
        &mut self,
        now_ns: u64,
        mut read: impl FnMut(u32) -> Result<SieveTraffic, E>,
    ) -> Result<Vec<Measured>, E> {
        let mut growths = BTreeMap::new();
        for (counter, meter) in &mut self.meters {
            let arrived = read(counter.index)?.arrived;
            growths.insert(*counter, meter.look(now_ns, counter.of(&arrived)));
        }
        let measured = self.uses.iter().map(|used| {
            let load = used.budget.and_then(|budget| {
                let growth = growths.get(&budget.counter).copied().flatten()?;
                Some(budget.load(growth))
            });
            Measured {
                used: used.used,
                index: used.index,
                budget: used.budget,
                load,
                pressure: load.and_then(|load| pressure(load, used.percentage, used.buckets)),
            }
        });
        Ok(measured.collect())
    }
}

#[cfg(test)]
mod tests;
