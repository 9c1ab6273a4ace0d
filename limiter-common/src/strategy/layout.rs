//! The words that window strategies keep: where in a state what is, and how long its ticks are.

use super::Strategy;

/// What the bits of a state mean. Four bytes, part of every unit and every budget.
///
/// The state of a window, from the highest bit on: when its current bucket ends, in ticks of
/// 2^`shift` nanoseconds, of which as many bits are kept as there is room for, so that the time
/// wraps; what was counted in it; and what was counted in the one before. The state of a bucket of
/// GCRA is a TAT, all 64 bits of it, and that of a moving window is told in
/// [`super::moving_window`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Layout {
    strategy: u8,
    shift: u8,
    count_bits: u8,
    previous_bits: u8,
}

/// The fewest bits of the time: a tick is then at most a 2048th of the period, and 256 periods
/// pass until the time wraps.
const LEAST_TIME_BITS: u32 = 20;

/// The most bits of what was counted in the bucket before: above that it is rounded up, by less
/// than a 4000th of the limit.
const MOST_PREVIOUS_BITS: u32 = 14;

impl Layout {
    /// Of GCRA.
    pub const GCRA: Self = Self::new(Strategy::Gcra, 0, 0, 0);

    /// Of moving windows.
    pub const MOVING_WINDOW: Self = Self::new(Strategy::MovingWindow, 0, 0, 0);

    /// The most tokens of a fixed window.
    pub(super) const LARGEST_COUNT: u64 = (1 << (u64::BITS - LEAST_TIME_BITS)) - 3;

    /// The most tokens of a sliding window counter.
    pub(super) const LARGEST_SLIDING_COUNT: u64 =
        (1 << (u64::BITS - LEAST_TIME_BITS - MOST_PREVIOUS_BITS)) - 3;

    const fn new(strategy: Strategy, shift: u8, count_bits: u8, previous_bits: u8) -> Self {
        Self {
            strategy: strategy as u8,
            shift,
            count_bits,
            previous_bits,
        }
    }

    /// The layout of a window strategy that counts up to `count` tokens in periods of `period_ns`
    /// nanoseconds; `None`: there is no room for so many.
    ///
    /// Of a sliding window counter both counts are kept. The count never has all its bits set, so
    /// that no state is [`crate::table::LOCKED`].
    #[cfg(not(target_arch = "bpf"))]
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "numbers of bits are at most 64"
    )]
    pub(super) const fn of_window(strategy: Strategy, count: u64, period_ns: u64) -> Option<Self> {
        // One more than the count is kept, too: a window that has refused.
        let Some(most) = count.checked_add(2) else {
            return None;
        };
        let count_bits = u64::BITS - most.leading_zeros();
        let previous_bits = match strategy {
            Strategy::SlidingWindowCounter if count_bits < MOST_PREVIOUS_BITS => count_bits,
            Strategy::SlidingWindowCounter => MOST_PREVIOUS_BITS,
            _ => 0,
        };
        let Some(time_bits) = u64::BITS.checked_sub(count_bits + previous_bits) else {
            return None;
        };
        if time_bits < LEAST_TIME_BITS {
            return None;
        }
        // A fifth of the bits beyond the fewest goes into when the time wraps, the others make
        // ticks shorter.
        let wrap_bits = 8 + (time_bits - LEAST_TIME_BITS) / 5;
        let period_bits = u64::BITS - period_ns.leading_zeros();
        let shift = (period_bits + wrap_bits).saturating_sub(time_bits);
        Some(Self::new(
            strategy,
            shift as u8,
            count_bits as u8,
            previous_bits as u8,
        ))
    }

    /// The layout of those four bytes, as [`Self::parts`] has them; `None`: they are of none.
    #[cfg(not(target_arch = "bpf"))]
    #[must_use]
    pub const fn from_parts([strategy, shift, count_bits, previous_bits]: [u8; 4]) -> Option<Self> {
        let layout = Self {
            strategy,
            shift,
            count_bits,
            previous_bits,
        };
        let is_layout = match strategy {
            0 | 2 => shift == 0 && count_bits == 0 && previous_bits == 0,
            1 | 3 => {
                shift < 64
                    && count_bits >= 2
                    && count_bits as u32 + previous_bits as u32 + LEAST_TIME_BITS <= u64::BITS
                    && (previous_bits > 0) == (strategy == 3)
                    && previous_bits <= count_bits
            }
            _ => false,
        };
        if is_layout { Some(layout) } else { None }
    }

    /// The number of the strategy, log2 of the nanoseconds of a tick, and the bits of both counts.
    #[cfg(not(target_arch = "bpf"))]
    #[must_use]
    pub const fn parts(self) -> [u8; 4] {
        [
            self.strategy,
            self.shift,
            self.count_bits,
            self.previous_bits,
        ]
    }

    /// By which rule states of this layout are decided on.
    #[must_use]
    #[inline(always)]
    pub const fn strategy(self) -> Strategy {
        Strategy::of_number(self.strategy)
    }

    /// A time or a duration in ticks, rounded down.
    #[must_use]
    #[inline(always)]
    pub const fn ticks(self, ns: u64) -> u64 {
        ns >> (self.shift & 63)
    }

    /// Ticks as nanoseconds.
    #[must_use]
    #[inline(always)]
    pub const fn ns(self, ticks: u64) -> u64 {
        let shift = self.shift & 63;
        if ticks > u64::MAX >> shift {
            return u64::MAX;
        }
        ticks << shift
    }

    /// Ticks that are not shorter than that duration, whatever was rounded down.
    #[cfg(not(target_arch = "bpf"))]
    #[must_use]
    pub(super) const fn whole_ticks(self, ns: u64) -> u64 {
        if self.shift == 0 {
            ns
        } else {
            ns.div_ceil(1 << self.shift) + 1
        }
    }

    /// The largest count that is kept.
    #[inline(always)]
    pub(super) const fn largest_count(self) -> u64 {
        (1 << (self.count_bits & 63)) - 2
    }

    /// Whether what was counted in the bucket before is kept.
    #[inline(always)]
    pub(super) const fn keeps_previous(self) -> bool {
        self.previous_bits != 0
    }

    #[inline(always)]
    const fn low_bits(self) -> u32 {
        ((self.count_bits + self.previous_bits) & 63) as u32
    }

    /// By how many bits the count before is rounded up: if it is, one bit more than there is no
    /// room for, so that none is too large.
    #[inline(always)]
    const fn previous_shift(self) -> u32 {
        if self.count_bits > self.previous_bits {
            ((self.count_bits - self.previous_bits + 1) & 63) as u32
        } else {
            0
        }
    }

    /// A number of tokens as a share of about the limit's count, if it is multiplied by them.
    #[inline(always)]
    pub(super) const fn share(self, product: u64) -> u64 {
        product >> (self.count_bits & 63)
    }

    /// How long after `now` the current bucket of a state ends, in ticks: up to where time wraps,
    /// so that one which has ended does so in a very long time.
    #[inline(always)]
    pub(super) const fn until_end(self, state: u64, now: u64) -> u64 {
        let low = self.low_bits();
        (state >> low).wrapping_sub(now) << low >> low
    }

    /// A duration in ticks as far as it is kept.
    #[inline(always)]
    pub(super) const fn wrapped(self, ticks: u64) -> u64 {
        let low = self.low_bits();
        ticks << low >> low
    }

    /// What was counted in the current bucket.
    #[inline(always)]
    pub(super) const fn count(self, state: u64) -> u64 {
        state >> (self.previous_bits & 63) & ((1 << (self.count_bits & 63)) - 1)
    }

    /// What was counted in the one before, or a little more.
    #[inline(always)]
    pub(super) const fn previous(self, state: u64) -> u64 {
        (state & ((1 << (self.previous_bits & 63)) - 1)) << self.previous_shift()
    }

    /// The state of a window whose current bucket ends at `end`, in ticks. A count that is too
    /// large is the largest that is kept; the one before is rounded up.
    #[inline(always)]
    pub(super) const fn state(self, end: u64, count: u64, previous: u64) -> u64 {
        let largest = self.largest_count();
        let count = if count < largest { count } else { largest };
        let shift = self.previous_shift();
        let rounded = previous.wrapping_add((1 << shift) - 1) >> shift;
        let most = (1 << (self.previous_bits & 63)) - 1;
        let previous = if rounded < most { rounded } else { most };
        end << self.low_bits() | count << (self.previous_bits & 63) | previous
    }
}
