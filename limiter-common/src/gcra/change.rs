//! What is to become of a bucket's state: a decision that a store may have to repeat.

use super::Wait;

/// What a packet takes from a bucket, in plain numbers: all that is left to know is the bucket's
/// TAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Spend {
    /// The time, in the limit's ticks.
    now: u64,
    /// The cost, in the limit's ticks.
    increment: u64,
    /// The latest TAT that it may lead to, in the limit's ticks.
    latest: u64,
}

impl Spend {
    /// From no bucket.
    pub const NONE: Self = Self {
        now: 0,
        increment: 0,
        latest: 0,
    };

    #[inline(always)]
    pub(super) const fn new(now: u64, increment: u64, latest: u64) -> Self {
        Self {
            now,
            increment,
            latest,
        }
    }

    /// `increment` at the time `now`, both in the limit's ticks, whatever the bucket holds: for
    /// those who move debts, and not for packets.
    #[cfg(not(target_arch = "bpf"))]
    #[must_use]
    pub const fn unbounded(now: u64, increment: u64) -> Self {
        Self::new(now, increment, u64::MAX)
    }

    /// The new TAT of a bucket whose TAT is `tat`; a full bucket's is any that has passed.
    ///
    /// # Errors
    ///
    /// How long to [`Wait`]; the bucket must then be left as it is.
    #[inline(always)]
    pub const fn apply(&self, tat: u64) -> Result<u64, Wait> {
        let full_again = self.start(tat).saturating_add(self.increment);
        if full_again > self.latest {
            Err(Wait(full_again - self.latest))
        } else {
            Ok(full_again)
        }
    }

    /// The new TAT of a bucket that gets it back. One that has refilled in between is not
    /// overfilled.
    #[must_use]
    #[inline(always)]
    pub const fn undo(&self, tat: u64) -> u64 {
        let lower = self.start(tat).saturating_sub(self.increment);
        if lower > self.now { lower } else { self.now }
    }

    /// When the bucket is full, now at the earliest.
    #[inline(always)]
    const fn start(&self, tat: u64) -> u64 {
        if tat > self.now { tat } else { self.now }
    }
}

/// What is to be done to a bucket.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// To take tokens, if it has them.
    Spend(&'a Spend),
    /// To give them back.
    Refund(&'a Spend),
}

impl Change<'_> {
    /// Whether it gives tokens back.
    #[must_use]
    #[inline(always)]
    pub const fn is_refund(&self) -> bool {
        matches!(self, Self::Refund(_))
    }

    /// The new TAT of a bucket whose TAT is `tat`; a full bucket's is any that has passed.
    ///
    /// # Errors
    ///
    /// As [`Spend::apply`]; a refund never fails.
    #[inline(always)]
    pub const fn apply(&self, tat: u64) -> Result<u64, Wait> {
        match self {
            Self::Spend(spend) => spend.apply(tat),
            Self::Refund(spend) => Ok(spend.undo(tat)),
        }
    }
}
