//! The generic cell rate algorithm on a theoretical arrival time (TAT): only the arithmetic.
//!
//! The formulas are from Boulder's `ratelimits/gcra.go`: `t = max(now, TAT)`, `new = t + cost × emission interval`,
//! allowed if `new ≤ now + burst offset`.
//!
//! # Ticks
//!
//! Boulder counts in nanoseconds and truncates `period / count` once, when a limit is loaded. That is exact enough if
//! the interval is long or divides evenly; this code does the same then, and one tick is one nanosecond. Otherwise
//! truncation would distort the rate (1 GB/s in bytes is one token per nanosecond; 300 MB/s would be truncated by a
//! tenth). Then the bucket counts in ticks that divide the emission interval evenly, and a 128-bit fixed-point product
//! converts the clock. Tokens are never rounded.

mod current;
mod exchange;
#[cfg(not(target_arch = "bpf"))]
mod report;
mod rule;
mod share;
mod spend;

pub(crate) use self::rule::{GenericCellRate, Tat};
pub use self::{
    current::CurrentRate,
    share::{KeyShare, Parts, ShareWord},
    spend::Spend,
};
use super::Level;
use crate::ratio::Ratio;

/// The longest time in which a bucket may refill, in ticks: the sum of a time and a burst offset then fits 64 bits for
/// over a century of uptime.
pub const MAX_BURST_OFFSET: u64 = 1 << 62;

/// The maximum number of tokens added per nanosecond: with this many ticks per nanosecond, 64 bits
/// last nine years of uptime, at over 500 Gbit/s in bytes.
pub const MAX_TOKENS_PER_NS: u64 = 64;

/// From this emission interval on, in nanoseconds, truncation to whole nanoseconds loses less than
/// one part in a million, and Boulder's own arithmetic is kept.
#[cfg(not(target_arch = "bpf"))]
const LONG_EMISSION_INTERVAL: u64 = 1_000_000;

/// A limit's parameters as the datapath computes with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Gcra {
    /// The ticks in which one token comes back; not 0.
    pub emission_interval: u64,
    /// The tokens of a full bucket.
    pub burst: u64,
    /// The ticks from empty to full: burst × emission interval.
    pub burst_offset: u64,
    /// Converts a time in nanoseconds to ticks.
    pub ticks_per_ns: Ratio,
    /// Converts a duration in ticks to nanoseconds.
    pub ns_per_tick: Ratio,
}

/// The bucket has too few tokens, and will have enough after this many ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait(pub u64);

/// The cost is more tokens than a full bucket holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargerThanBurst;

/// The ticks in which `cost` tokens come back, at most [`MAX_BURST_OFFSET`].
#[inline(always)]
pub(crate) const fn bounded_increment(emission_interval: u64, cost: u64) -> u64 {
    // A division, because BPF has no 128-bit product. It runs rarely: most packets cost one token.
    if cost <= 1 || emission_interval <= MAX_BURST_OFFSET / cost {
        emission_interval.wrapping_mul(cost)
    } else {
        MAX_BURST_OFFSET
    }
}

impl Gcra {
    /// The parameters of no limit.
    pub const NONE: Self = Self {
        emission_interval: 0,
        burst: 0,
        burst_offset: 0,
        ticks_per_ns: Ratio::ONE,
        ns_per_tick: Ratio::ONE,
    };

    /// Makes the parameters of a limit of `burst` tokens, refilled by `count` tokens every
    /// `period_ns` nanoseconds.
    ///
    /// `None` if one of them is 0, if more than [`MAX_TOKENS_PER_NS`] would be added per
    /// nanosecond, if the burst offset would exceed [`MAX_BURST_OFFSET`], or if the ticks of a
    /// period would not fit 64 bits, which takes a period of centuries.
    #[cfg(not(target_arch = "bpf"))]
    #[must_use]
    pub const fn new(burst: u64, count: u64, period_ns: u64) -> Option<Self> {
        if burst == 0
            || count == 0
            || period_ns == 0
            || count.div_ceil(period_ns) > MAX_TOKENS_PER_NS
        {
            return None;
        }
        let even = period_ns.is_multiple_of(count);
        let (emission_interval, ticks_per_ns, ns_per_tick) =
            if even || period_ns / count >= LONG_EMISSION_INTERVAL {
                (period_ns / count, Ratio::ONE, Ratio::ONE)
            } else {
                // The smallest number of ticks per token that keeps a tick from being longer than a nanosecond.
                let ticks_per_token = period_ns.div_ceil(count);
                let Some(ticks_per_period) = count.checked_mul(ticks_per_token) else {
                    return None;
                };
                match (
                    Ratio::new(ticks_per_period, period_ns),
                    Ratio::new(period_ns, ticks_per_period),
                ) {
                    (Some(ticks), Some(ns)) => (ticks_per_token, ticks, ns),
                    _ => return None,
                }
            };
        match emission_interval.checked_mul(burst) {
            Some(burst_offset) if burst_offset <= MAX_BURST_OFFSET => Some(Self {
                emission_interval,
                burst,
                burst_offset,
                ticks_per_ns,
                ns_per_tick,
            }),
            _ => None,
        }
    }

    /// Converts the time `now_ns` to this limit's ticks.
    #[must_use]
    #[inline(always)]
    pub const fn ticks(&self, now_ns: u64) -> u64 {
        self.ticks_per_ns.scale(now_ns)
    }

    /// Converts a duration in this limit's ticks to nanoseconds, rounded down.
    #[must_use]
    #[inline(always)]
    pub const fn ns(&self, ticks: u64) -> u64 {
        self.ns_per_tick.scale(ticks)
    }

    /// Prepares to spend `cost` tokens at `now` ticks.
    ///
    /// The invariant: over any interval, at most burst + interval / emission interval is spent.
    ///
    /// # Errors
    ///
    /// [`LargerThanBurst`]: it never passes.
    #[inline(always)]
    pub const fn spend(&self, now: u64, cost: u64) -> Result<Spend, LargerThanBurst> {
        // Bounds the product below: cost × emission interval ≤ burst offset.
        if cost > self.burst {
            return Err(LargerThanBurst);
        }
        Ok(Spend::new(
            now,
            cost.wrapping_mul(self.emission_interval),
            now.saturating_add(self.burst_offset),
        ))
    }

    /// Prepares to spend more tokens than a full bucket holds, at `now` ticks. The bucket must be full, and owes the
    /// rest, for at most [`MAX_BURST_OFFSET`].
    ///
    /// The invariant: over any interval, at most `cost` + interval / emission interval is spent.
    #[must_use]
    #[inline(always)]
    pub const fn spend_owing(&self, now: u64, cost: u64) -> Spend {
        let increment = bounded_increment(self.emission_interval, cost);
        Spend::new(now, increment, now.saturating_add(increment))
    }

    /// Takes a token at `now` ticks from the bucket with this TAT; returns whether it had one.
    #[inline(always)]
    pub const fn take(&self, now: u64, tat: &mut u64) -> bool {
        if let Ok(spend) = self.spend(now, 1)
            && let Ok(after) = spend.apply(*tat)
        {
            *tat = after;
            return true;
        }
        false
    }

    /// The level of the bucket at `now` ticks.
    #[must_use]
    pub const fn level(&self, now: u64, tat: Option<u64>) -> Level {
        let debt = match tat {
            Some(tat) => tat.saturating_sub(now),
            None => 0,
        };
        let credit = self.burst_offset.saturating_sub(debt);
        let missing = self
            .emission_interval
            .saturating_add(debt)
            .saturating_sub(self.burst_offset);
        Level {
            remaining: match credit.checked_div(self.emission_interval) {
                Some(tokens) => tokens,
                None => 0,
            },
            retry_in_ns: self.ns_rounded_up(missing),
            reset_in_ns: self.ns_rounded_up(debt),
        }
    }

    /// Converts ticks to a sufficient wait in nanoseconds. It rounds up, because a tick may be shorter than a
    /// nanosecond.
    pub(in crate::strategy) const fn ns_rounded_up(&self, ticks: u64) -> u64 {
        let ns = self.ns(ticks);
        if self.ticks(ns) < ticks { ns + 1 } else { ns }
    }
}

#[cfg(test)]
mod tests;
