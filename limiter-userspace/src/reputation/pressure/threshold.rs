//! What a pressure is measured by.

use limiter_common::{counters::Traffic, limit::Cost, sieve::pressure_of_limit};
use limiter_policy::policy::{Limit, Mode, Policy, PressureOf, Sieve, SieveUse};

use super::{Growth, Load};

/// So many packets, bytes or new connections in so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// Where arrivals are counted.
    pub(super) counter: Counter,
    /// What counts; a limit of new connections counts no other arrivals at all.
    pub cost: Cost,
    /// How many.
    pub count: u64,
    /// In how many nanoseconds.
    pub period_ns: u64,
}

/// A counter of what arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Counter {
    /// The index of the use that counts.
    pub(super) index: u32,
    in_bytes: bool,
}

impl Counter {
    pub(super) const fn of(self, arrived: &Traffic) -> u64 {
        if self.in_bytes {
            arrived.bytes
        } else {
            arrived.packets
        }
    }
}

impl Threshold {
    /// Returns the threshold of a use of that sieve; `None`: nothing is counted.
    #[must_use]
    pub fn of(policy: &Policy, sieve: &Sieve, used: SieveUse) -> Option<Self> {
        match &sieve.pressure {
            Some(PressureOf::PacketsPerSecond(count)) => Some(Self {
                counter: Counter {
                    index: used.index()?,
                    in_bytes: false,
                },
                cost: Cost::Packets,
                count: *count,
                period_ns: 1_000_000_000,
            }),
            Some(PressureOf::Limit(name)) => {
                let mut limits = policy.limits.iter();
                Self::of_limit(limits.find(|limit| limit.name == *name)?)
            }
            None => {
                let mut limits = policy.limits.iter();
                Self::of_limit(limits.find(|limit| Some(limit.id) == used.limit)?)
            }
        }
    }

    fn of_limit(limit: &Limit) -> Option<Self> {
        let rate = limit.default.filter(|_| limit.mode != Mode::Off)?;
        Some(Self {
            counter: Counter {
                index: pressure_of_limit(limit.id),
                in_bytes: limit.cost == Cost::Bytes,
            },
            cost: limit.cost,
            count: rate.count,
            period_ns: rate.period_ns,
        })
    }

    /// Returns what is used of it if a counter has grown so. Both rates are multiplied by both
    /// spans of time: nothing is divided, so nothing is rounded.
    #[must_use]
    pub fn load(&self, growth: Growth) -> Load {
        Load {
            active: u128::from(growth.amount) * u128::from(self.period_ns),
            limit: u128::from(self.count) * u128::from(growth.elapsed_ns),
        }
    }

    /// Returns how many a second.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "nobody reads more than a few digits"
    )]
    pub fn per_second(&self) -> f64 {
        self.count as f64 * 1e9 / self.period_ns as f64
    }
}
