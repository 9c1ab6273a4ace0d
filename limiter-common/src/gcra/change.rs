//! What is to become of a bucket's state: a decision that a store may have to repeat.

use super::Wait;

/// A spend or a refund, prepared: all that is left to know is the bucket's TAT.
///
/// Plain numbers, so that the kernel program can hand it to a function of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Change {
    /// [`SPEND`] or [`REFUND`].
    kind: u64,
    /// The time, in the limit's ticks.
    now: u64,
    /// The cost, in the limit's ticks.
    increment: u64,
    /// The latest TAT that a spend may lead to, in the limit's ticks.
    latest: u64,
}

const SPEND: u64 = 0;
const REFUND: u64 = 1;

impl Change {
    /// Of no bucket.
    pub const NONE: Self = Self {
        kind: SPEND,
        now: 0,
        increment: 0,
        latest: 0,
    };

    #[inline(always)]
    pub(super) const fn spend(now: u64, increment: u64, latest: u64) -> Self {
        Self {
            kind: SPEND,
            now,
            increment,
            latest,
        }
    }

    /// Takes the spend back. A bucket that has refilled in between is not overfilled.
    #[must_use]
    #[inline(always)]
    pub const fn undone(self) -> Self {
        Self {
            kind: REFUND,
            ..self
        }
    }

    /// Whether it takes a spend back.
    #[must_use]
    #[inline(always)]
    pub const fn is_refund(&self) -> bool {
        self.kind == REFUND
    }

    /// The new TAT of a bucket whose TAT is `tat`; `None` is a full bucket.
    ///
    /// # Errors
    ///
    /// How long to [`Wait`]; the bucket must then be left as it is. A refund never fails.
    #[inline(always)]
    pub const fn apply(&self, tat: Option<u64>) -> Result<u64, Wait> {
        // A missing bucket is one whose TAT has long passed.
        let tat = match tat {
            Some(tat) => tat,
            None => 0,
        };
        let start = if tat > self.now { tat } else { self.now };
        if self.kind == REFUND {
            let lower = start.saturating_sub(self.increment);
            return Ok(if lower > self.now { lower } else { self.now });
        }
        let full_again = start.saturating_add(self.increment);
        if full_again > self.latest {
            Err(Wait(full_again - self.latest))
        } else {
            Ok(full_again)
        }
    }
}
