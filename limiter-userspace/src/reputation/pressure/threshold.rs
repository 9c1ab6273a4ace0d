//! What a pressure is measured by.

use limiter_common::{
    counters::Traffic,
    limit::{Cost, LimitId},
    sieve::pressure_of_limit,
};
use limiter_policy::policy::{Limit, Mode, Policy, PressureOf, Sieve, SieveUse};

use super::{Growth, Load};

/// So many packets, bytes or new connections in so long, or connections open at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// What counts; a limit of new connections counts no other arrivals at all.
    pub cost: Cost,
    /// How many.
    count: u64,
    pub(super) gauged: Gauged,
}

/// How the use of a threshold is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gauged {
    /// By what arrives.
    Arriving {
        counter: Counter,
        /// The time for the whole threshold, in nanoseconds.
        period_ns: u64,
    },
    /// By the connections that the limit counts, with others of its group by the first of them.
    Open(LimitId),
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
                cost: Cost::Packets,
                count: *count,
                gauged: Gauged::Arriving {
                    counter: Counter {
                        index: used.index()?,
                        in_bytes: false,
                    },
                    period_ns: 1_000_000_000,
                },
            }),
            Some(PressureOf::Limit(name)) => {
                let mut limits = policy.limits.iter();
                Self::of_limit(policy, limits.find(|limit| limit.name == *name)?)
            }
            None => {
                let mut limits = policy.limits.iter();
                Self::of_limit(policy, limits.find(|limit| Some(limit.id) == used.limit)?)
            }
        }
    }

    fn of_limit(policy: &Policy, limit: &Limit) -> Option<Self> {
        let rate = limit.default.filter(|_| limit.mode != Mode::Off)?;
        let cost = limit.cost;
        if cost == Cost::Connections {
            return Some(Self {
                cost,
                count: rate.burst,
                gauged: Gauged::Open(limit.counted_as(&policy.limits)),
            });
        }
        Some(Self {
            cost,
            count: rate.count,
            gauged: Gauged::Arriving {
                counter: Counter {
                    index: pressure_of_limit(limit.id),
                    in_bytes: cost == Cost::Bytes,
                },
                period_ns: rate.period_ns,
            },
        })
    }

    /// Returns where what arrives is counted, if that matters.
    pub(super) const fn counter(&self) -> Option<Counter> {
        match self.gauged {
            Gauged::Arriving { counter, .. } => Some(counter),
            Gauged::Open(_) => None,
        }
    }

    /// Returns what is used of it if a counter has grown so in a time, of which the whole is
    /// `period_ns`. Both rates are multiplied by both spans of time: nothing is divided, so nothing is
    /// rounded.
    pub(super) fn load_of(&self, growth: Growth, period_ns: u64) -> Load {
        Load {
            active: u128::from(growth.amount) * u128::from(period_ns),
            limit: u128::from(self.count) * u128::from(growth.elapsed_ns),
        }
    }

    /// Returns what is used of it if so many connections are open.
    pub(super) fn load_by(&self, open: u64) -> Load {
        Load {
            active: open.into(),
            limit: self.count.into(),
        }
    }

    /// Returns how many: a second, or open at once.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "nobody reads more than a few digits"
    )]
    pub fn most(&self) -> f64 {
        match self.gauged {
            Gauged::Arriving { period_ns, .. } => self.count as f64 * 1e9 / period_ns as f64,
            Gauged::Open(_) => self.count as f64,
        }
    }
}
