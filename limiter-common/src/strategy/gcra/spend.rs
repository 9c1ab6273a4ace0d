//! A packet's spend from a bucket of GCRA.

use super::Wait;
use crate::strategy::Decision;

/// The amount that a packet takes from a bucket, in plain numbers. Together with the bucket's TAT,
/// it suffices for a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Spend {
    /// The time, in the limit's ticks.
    pub now: u64,
    /// The cost, in the limit's ticks.
    pub increment: u64,
    /// The latest allowed TAT, in the limit's ticks.
    pub latest: u64,
}

impl Spend {
    /// A spend of nothing, from no bucket.
    pub const NONE: Self = Self {
        now: 0,
        increment: 0,
        latest: 0,
    };

    #[inline(always)]
    pub(crate) const fn new(now: u64, increment: u64, latest: u64) -> Self {
        Self {
            now,
            increment,
            latest,
        }
    }

    /// The same spend under trunk reservation: it must leave `reserve` ticks in the bucket.
    ///
    /// It passes exactly if the bucket would hold at least the reserve afterwards; the reserve is
    /// at most the burst offset. With `debt` = max(0, TAT − now):
    ///
    /// * **The bound on sources that must leave it.** Each of their packets has a new TAT ≤ now +
    ///   burst offset − reserve, and no packet lowers a TAT. So over any interval that ends with
    ///   such a packet, all admitted packets, from any source, cost at most burst offset − reserve
    ///   + interval. The bound of the whole bucket stays the same.
    /// * **The promise to sources that need not leave it.** Consider a separate bucket of theirs
    ///   with the same emission interval and the reserve as its burst offset, and call its debt
    ///   `own` ≤ reserve. All packets that it would admit are admitted here, because `debt` ≤ burst
    ///   offset − reserve + `own` always: it holds for a full bucket; time lowers both by as much,
    ///   to 0 at least; a packet that leaves the reserve keeps `debt` ≤ burst offset − reserve; a
    ///   packet of these sources adds its cost to both. So `debt` ≤ burst offset after each of
    ///   their packets: other sources' traffic causes no refusal.
    #[must_use]
    #[inline(always)]
    pub const fn leaving(self, reserve: u64) -> Self {
        Self {
            latest: self.latest.saturating_sub(reserve),
            ..self
        }
    }

    /// The new TAT of a bucket with the TAT `tat`; any TAT that has passed is a full bucket's.
    ///
    /// # Errors
    ///
    /// The time to [`Wait`]; the caller must then leave the bucket unchanged.
    #[inline(always)]
    pub const fn apply(&self, tat: u64) -> Result<u64, Wait> {
        let full_again = self.start(tat).saturating_add(self.increment);
        if full_again > self.latest {
            Err(Wait(full_again - self.latest))
        } else {
            Ok(full_again)
        }
    }

    /// [`Self::apply`] as a [`Decision`], in ticks.
    #[must_use]
    #[inline(always)]
    pub const fn decide(&self, tat: u64) -> Decision {
        match self.apply(tat) {
            Ok(tat) => Decision::pass(tat),
            Err(Wait(ticks)) => Decision::refuse(tat, ticks),
        }
    }

    /// Gives the spend back; returns the bucket's new TAT. A bucket that has refilled in between is
    /// not overfilled.
    #[must_use]
    #[inline(always)]
    pub const fn undo(&self, tat: u64) -> u64 {
        let lower = self.start(tat).saturating_sub(self.increment);
        if lower > self.now { lower } else { self.now }
    }

    /// The time at which the bucket is full, at the earliest now.
    #[inline(always)]
    const fn start(&self, tat: u64) -> u64 {
        if tat > self.now { tat } else { self.now }
    }
}
