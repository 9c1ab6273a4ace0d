//! Shortages: when limits last refused somebody for their reserves, and since when they do.

use super::Tick;

/// A shortage as one word, which all CPUs share.
///
/// From the lowest bit on: 32 bits for the tick when it was last renewed, 32 bits for the tick
/// after the one when it began. 0: there never was one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Shortage(pub u64);

impl Shortage {
    /// There never was one.
    pub const NONE: Self = Self(0);

    /// Returns whether it holds: it was renewed within the last minute.
    #[must_use]
    #[inline(always)]
    pub const fn holds(self, now: Tick) -> bool {
        self.0 != 0 && now.since(self.renewed()) < Tick::MINUTE
    }

    /// Returns when it began.
    #[must_use]
    #[inline(always)]
    pub const fn began(self) -> Tick {
        Tick(((self.0 >> 32) as u32).wrapping_sub(1))
    }

    /// Returns when a limit last refused somebody for its reserve.
    #[must_use]
    #[inline(always)]
    pub const fn renewed(self) -> Tick {
        Tick(self.0 as u32)
    }

    /// Returns the shortage after such a refusal; itself if it says so already.
    #[must_use]
    #[inline(always)]
    pub const fn after_refusal(self, now: Tick) -> Self {
        if !self.holds(now) {
            return Self((now.0.wrapping_add(1) as u64) << 32 | now.0 as u64);
        }
        if now.since(self.renewed()) == 0 {
            return self;
        }
        Self(self.0 >> 32 << 32 | now.0 as u64)
    }
}

/// The word in memory that all CPUs share.
pub trait ShortageWord {
    /// Returns the word's value.
    fn get(&self) -> u64;
    /// Sets the word to `new` if it still is `seen`, in one atomic step.
    fn compare_and_swap(&self, seen: u64, new: u64) -> bool;
}

/// Notes that a limit refused somebody for its reserve. It writes at most once a tick, whatever the
/// number of CPUs. Where it does not, another CPU has noted the same.
#[inline(always)]
pub fn renew<W: ShortageWord>(word: &W, now: Tick) {
    let seen = word.get();
    let renewed = Shortage(seen).after_refusal(now).0;
    if renewed != seen {
        word.compare_and_swap(seen, renewed);
    }
}
