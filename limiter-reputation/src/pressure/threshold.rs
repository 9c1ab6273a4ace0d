//! The threshold that a pressure is measured against.

use limiter_common::{
    counters::Traffic,
    limit::{Cost, LimitId},
    sieve::pressure_of_limit,
};
use limiter_policy::policy::{Limit, Mode, Policy, PressureOf, Sieve, SieveUse};

use super::{Growth, Load};

/// A number of packets, bytes or new connections in a time, or of connections open at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// The counted quantity; a limit of new connections counts no other arrivals at all.
    pub cost: Cost,
    /// The whole threshold.
    count: u64,
    pub(super) gauged: LoadSource,
}

/// How the used part of a threshold is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoadSource {
    /// By arriving traffic.
    Arriving {
        counter: Counter,
        /// The time for the whole threshold, in nanoseconds.
        period_ns: u64,
    },
    /// By the connections that the limit counts. Limits of a group share a count, under the first of them.
    Open(LimitId),
}

/// A counter of arriving traffic.
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
                gauged: LoadSource::Arriving {
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
                gauged: LoadSource::Open(limit.counted_as(&policy.limits)),
            });
        }
        Some(Self {
            cost,
            count: rate.count,
            gauged: LoadSource::Arriving {
                counter: Counter {
                    index: pressure_of_limit(limit.id),
                    in_bytes: cost == Cost::Bytes,
                },
                period_ns: rate.period_ns,
            },
        })
    }

    /// Returns the counter of arriving traffic, if the threshold uses one.
    pub(super) const fn counter(&self) -> Option<Counter> {
        match self.gauged {
            LoadSource::Arriving { counter, .. } => Some(counter),
            LoadSource::Open(_) => None,
        }
    }

    /// Returns the load from a counter's growth; `period_ns` is the time for the whole threshold. Both rates are
    /// multiplied by both spans of time, so there is no division, and nothing is rounded.
    pub(super) fn load_of(&self, growth: Growth, period_ns: u64) -> Load {
        Load {
            active: u128::from(growth.amount) * u128::from(period_ns),
            limit: u128::from(self.count) * u128::from(growth.elapsed_ns),
        }
    }

    /// Returns the load from the number of open connections.
    pub(super) fn load_by(&self, open: u64) -> Load {
        Load {
            active: open.into(),
            limit: self.count.into(),
        }
    }

    /// The threshold's number: per second, or open at once.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "nobody reads more than a few digits"
    )]
    pub fn most(&self) -> f64 {
        match self.gauged {
            LoadSource::Arriving { period_ns, .. } => self.count as f64 * 1e9 / period_ns as f64,
            LoadSource::Open(_) => self.count as f64,
        }
    }
}
