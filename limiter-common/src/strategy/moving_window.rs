//! Moving window: at most `count` packets in any period, by a log of when the last ones passed.
//!
//! As in the Python library `limits`: a packet is refused if the `count`-th last one that passed
//! is younger than the period. What is refused leaves no trace.
//!
//! # The log
//!
//! A state is a cursor: the number of the next stamp of the log, of [`STAMPS`] that are used in
//! turn, and the TAT of the last packet that passed, which is when its window ends. The TATs of
//! those before it are in stamps: buckets of their own, each a word that only ever grows.
//!
//! To let a packet pass takes three steps: stamp the last packet's TAT behind the cursor, if it is
//! not there yet; read the stamp of the `count`-th last one, which must have passed; and move the
//! cursor by compare-and-swap. That last step is the one moment at which it is decided:
//!
//! * Whoever moves the cursor has seen the stamp it is decided by while the cursor stood where it
//!   was moved from. A stamp is overwritten only [`STAMPS`] packets later, by when the cursor has
//!   moved; and a cursor never comes back to the same place with the same TAT: the last of the
//!   [`STAMPS`] packets in between has passed when the window of the first had ended.
//! * Whoever moves the cursor on has made sure before that the packet it leaves behind is
//!   stamped. So of all packets but the last one the TAT is in the log.
//! * A stamp that somebody writes late is older than what has replaced it, and changes nothing.
//! * TATs never go back, whatever the clocks of the CPUs say: a packet that is behind the last one
//!   gets the TAT of that. So when the last one's has passed by any clock, all have, and only then is
//!   the log not looked at and not gone on with.
//!
//! So every packet is decided on as if all came one after the other, in the order in which the
//! cursor moved: never one too many and, but for refunds and lost races, never one too few. How
//! many packets a limit counts is no part of the state, so it may change from one to the next.

use super::{Decision, Spend};
use crate::owner::BucketKey;

/// How many stamps a log has, and so how many packets a limit may count.
pub const STAMPS: u64 = 128;

/// The longest period, in nanoseconds: 417 days.
pub const MAX_PERIOD: u64 = 1 << 55;

/// How far the times of two packets are apart at most that come one after the other by the cursor,
/// in nanoseconds: the clock of one CPU may be behind, or a CPU be held up once it has read it.
pub(crate) const MOST_BEHIND: u64 = 1 << 30;

/// The same as [`STAMPS`], for arrays.
const LOG_LENGTH: usize = 128;

const _: () = assert!(LOG_LENGTH as u64 == STAMPS);

const NUMBER_BITS: u32 = STAMPS.trailing_zeros();

/// Where a log stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The number of the next stamp, below [`STAMPS`].
    pub next: u64,
    /// The TAT of the last packet that passed, in nanoseconds; 0: there is none, or it has passed
    /// for longer than clocks are apart.
    pub last: u64,
}

impl Cursor {
    /// What a state says at the time `now`, in nanoseconds.
    ///
    /// Of the TAT 57 bits are kept: one that has passed for over two years could be mistaken for
    /// one to come, in longer than any period.
    #[must_use]
    #[inline(always)]
    pub const fn of_state(state: u64, now: u64) -> Self {
        let next = state & (STAMPS - 1);
        let since = now.wrapping_sub(MOST_BEHIND);
        let since = (state >> NUMBER_BITS).wrapping_sub(since) << NUMBER_BITS >> NUMBER_BITS;
        Self {
            next,
            last: if state != 0 && since <= 2 * MAX_PERIOD + MOST_BEHIND {
                now.saturating_add(since).saturating_sub(MOST_BEHIND)
            } else {
                0
            },
        }
    }

    /// The state that says so; a nanosecond later in place of [`crate::table::LOCKED`], and of that
    /// of a full bucket.
    #[must_use]
    #[inline(always)]
    pub const fn state(self) -> u64 {
        match self.last << NUMBER_BITS | self.next {
            u64::MAX => self.next,
            0 if self.last != 0 => 1 << NUMBER_BITS,
            state => state,
        }
    }

    /// Where the log stands without the `count` packets that passed last; at its beginning, if by the
    /// time `now`, in nanoseconds, none of the others counts.
    #[cfg(not(target_arch = "bpf"))]
    #[must_use]
    pub fn without_last(self, count: u64, log: &Log, now: u64) -> Self {
        let last = if count < STAMPS {
            log.nth_last(self, count + 1)
        } else {
            0
        };
        if last > now {
            let next = self.stamp(count);
            Self { next, last }
        } else {
            Self { next: 0, last: 0 }
        }
    }

    /// The number of the stamp of the packet that passed as the `nth` last, up to [`STAMPS`]; the
    /// last one is the first last.
    #[must_use]
    #[inline(always)]
    pub const fn stamp(self, nth: u64) -> u64 {
        self.next.wrapping_sub(nth) & (STAMPS - 1)
    }
}

/// Decides on a bucket in that state, of which the `count`-th last packet has the TAT `oldest`, in
/// nanoseconds.
#[must_use]
#[inline(always)]
pub(crate) const fn decide(spend: &Spend, state: u64, cursor: Cursor, oldest: u64) -> Decision {
    let (now, period) = (spend.now(), spend.window().period);
    if oldest > now {
        return Decision::refuse(state, oldest - now);
    }
    let tat = now.saturating_add(period);
    let behind = cursor.last.saturating_sub(tat);
    let moved = Cursor {
        next: (cursor.next + 1) & (STAMPS - 1),
        // Further behind, the last one has passed under a longer period.
        last: if behind <= MOST_BEHIND {
            tat + behind
        } else {
            tat
        },
    };
    Decision::pass(moved.state())
}

/// How long until nothing of a state counts any more, in nanoseconds.
#[inline(always)]
pub(crate) const fn until_forgotten(state: u64, now: u64) -> u64 {
    Cursor::of_state(state, now).last.saturating_sub(now)
}

/// The TATs of the packets of a log, for those who look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// By the number of the stamp; 0 where there is none.
    pub stamps: [u64; LOG_LENGTH],
}

impl Log {
    /// Of no packets.
    pub const EMPTY: Self = Self {
        stamps: [0; LOG_LENGTH],
    };

    /// The log of a bucket. `state` tells that of a bucket; 0: there is none.
    ///
    /// # Errors
    ///
    /// Those of `state`.
    pub fn read<E>(
        bucket: &BucketKey,
        mut state: impl FnMut(&BucketKey) -> Result<u64, E>,
    ) -> Result<Self, E> {
        let mut log = Self::EMPTY;
        for (number, stamp) in (0..).zip(&mut log.stamps) {
            *stamp = state(&bucket.of_stamp(number))?;
        }
        Ok(log)
    }

    /// The stamp of that number; 0: there is none.
    #[must_use]
    pub fn stamp(&self, number: u64) -> u64 {
        let number = usize::try_from(number).unwrap_or_default();
        self.stamps[number % LOG_LENGTH]
    }

    /// The TAT of the packet that passed as the `nth` last.
    pub(super) fn nth_last(&self, cursor: Cursor, nth: u64) -> u64 {
        if nth == 1 {
            cursor.last
        } else {
            self.stamp(cursor.stamp(nth))
        }
    }
}

#[cfg(test)]
mod tests;
