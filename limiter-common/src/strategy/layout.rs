//! Layouts: the parts of a state's word, and the length of its ticks.

use super::Strategy;

/// The meaning of a state's bits. Four bytes, part of every unit and of all parameters.
///
/// The state of a window contains, from the highest bit on: the end of the current window, in ticks
/// of 2^`shift` nanoseconds, in all remaining bits, so that the time wraps; the count of that
/// window; and the count of the previous one. The state of a GCRA bucket is a TAT of 64 bits;
/// [`super::moving_window`] describes the state of a moving window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Layout {
    strategy: u8,
    shift: u8,
    count_bits: u8,
    previous_bits: u8,
}

/// The minimum number of bits of the time: a tick is then at most a 2048th of the period, and the
/// time wraps after 256 periods.
#[cfg(not(target_arch = "bpf"))]
const LEAST_TIME_BITS: u32 = 20;

/// The maximum number of bits of the previous window's count: larger counts are rounded up, by less
/// than a 4000th of the limit.
#[cfg(not(target_arch = "bpf"))]
const MOST_PREVIOUS_BITS: u32 = 14;

impl Layout {
    /// The layout of GCRA.
    pub const GCRA: Self = Self::whole(Strategy::Gcra);

    /// Makes the layout of a strategy with undivided states: one word, in ticks of a nanosecond.
    pub(super) const fn whole(strategy: Strategy) -> Self {
        Self::new(strategy, 0, 0, 0)
    }

    pub(super) const fn new(
        strategy: Strategy,
        shift: u8,
        count_bits: u8,
        previous_bits: u8,
    ) -> Self {
        Self {
            strategy: strategy as u8,
            shift,
            count_bits,
            previous_bits,
        }
    }

    /// The strategy that decides on states of this layout.
    ///
    /// Natively a layout comes from a strategy, or from checked parts. The kernel program reads it
    /// from tables that only the daemon writes, but must accept any number: it treats an unknown
    /// one as GCRA: its arithmetic is safe on any numbers.
    #[must_use]
    #[inline(always)]
    pub const fn strategy(self) -> Strategy {
        match Strategy::of_number(self.strategy) {
            Some(strategy) => strategy,
            None if cfg!(target_arch = "bpf") => Strategy::Gcra,
            None => unreachable!(),
        }
    }

    /// Whether both layouts belong to the same strategy.
    #[inline(always)]
    pub(super) const fn is_of_strategy_of(self, other: Self) -> bool {
        self.strategy == other.strategy
    }

    /// Converts a time or a duration to ticks, rounded down.
    #[must_use]
    #[inline(always)]
    pub const fn ticks(self, ns: u64) -> u64 {
        ns >> (self.shift & 63)
    }

    /// Converts ticks to nanoseconds.
    #[must_use]
    #[inline(always)]
    pub const fn ns(self, ticks: u64) -> u64 {
        let shift = self.shift & 63;
        if ticks > u64::MAX >> shift {
            return u64::MAX;
        }
        ticks << shift
    }

    /// The largest count that fits.
    #[inline(always)]
    pub(super) const fn largest_count(self) -> u64 {
        (1 << (self.count_bits & 63)) - 2
    }

    /// Whether states keep the previous window's count.
    #[inline(always)]
    pub(super) const fn keeps_previous(self) -> bool {
        self.previous_bits != 0
    }

    #[inline(always)]
    const fn low_bits(self) -> u32 {
        ((self.count_bits + self.previous_bits) & 63) as u32
    }

    /// The number of bits by which the previous count is rounded up: 0, or one more than the number
    /// of missing bits, so that no rounded count is too large.
    #[inline(always)]
    const fn previous_shift(self) -> u32 {
        if self.count_bits > self.previous_bits {
            ((self.count_bits - self.previous_bits + 1) & 63) as u32
        } else {
            0
        }
    }

    /// Divides a product with a number of tokens by about the limit's count.
    #[inline(always)]
    pub(super) const fn divide(self, product: u64) -> u64 {
        product >> (self.count_bits & 63)
    }

    /// The time from `now` to the end of a state's current window, in ticks modulo the time's
    /// range: a window that has ended seems to end in a very long time.
    #[inline(always)]
    pub(super) const fn until_end(self, state: u64, now: u64) -> u64 {
        let low = self.low_bits();
        (state >> low).wrapping_sub(now) << low >> low
    }

    /// A duration in ticks modulo the time's range.
    #[inline(always)]
    pub(super) const fn wrapped(self, ticks: u64) -> u64 {
        let low = self.low_bits();
        ticks << low >> low
    }

    /// The count of the current window.
    #[inline(always)]
    pub(super) const fn count(self, state: u64) -> u64 {
        state >> (self.previous_bits & 63) & ((1 << (self.count_bits & 63)) - 1)
    }

    /// The count of the previous window, or a little more.
    #[inline(always)]
    pub(super) const fn previous(self, state: u64) -> u64 {
        (state & ((1 << (self.previous_bits & 63)) - 1)) << self.previous_shift()
    }

    /// The state of a bucket with a current window that ends at `end`, in ticks. A count that is
    /// too large becomes the largest that fits; the previous one is rounded up.
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

#[cfg(not(target_arch = "bpf"))]
impl Layout {
    /// The largest limit if only the current window is counted.
    pub(super) const LARGEST_COUNT: u64 = (1 << (u64::BITS - LEAST_TIME_BITS)) - 3;

    /// The largest limit if the previous window is counted too.
    pub(super) const LARGEST_COUNT_WITH_PREVIOUS: u64 =
        (1 << (u64::BITS - LEAST_TIME_BITS - MOST_PREVIOUS_BITS)) - 3;

    /// Makes the layout of a window strategy that counts up to `count` tokens in periods of
    /// `period_ns` nanoseconds, with or without the previous window's count; `None`: the count does
    /// not fit.
    ///
    /// The count never has all its bits set, so that no state is [`super::NO_STATE`].
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "numbers of bits are at most 64"
    )]
    pub(super) const fn of_window(
        strategy: Strategy,
        keeps_previous: bool,
        count: u64,
        period_ns: u64,
    ) -> Option<Self> {
        // The count plus one must fit too: it marks a window that has refused.
        let Some(most) = count.checked_add(2) else {
            return None;
        };
        let count_bits = u64::BITS - most.leading_zeros();
        let previous_bits = match keeps_previous {
            true if count_bits < MOST_PREVIOUS_BITS => count_bits,
            true => MOST_PREVIOUS_BITS,
            false => 0,
        };
        let Some(time_bits) = u64::BITS.checked_sub(count_bits + previous_bits) else {
            return None;
        };
        if time_bits < LEAST_TIME_BITS {
            return None;
        }
        // A fifth of the bits beyond the minimum delays the wrapping of the time; the others make
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

    /// Whether the states are undivided.
    pub(super) fn is_whole(self) -> bool {
        self == Self {
            strategy: self.strategy,
            ..Self::GCRA
        }
    }

    /// Whether this is the layout of a window, with or without the previous window's count.
    pub(super) fn is_of_window(self, keeps_previous: bool) -> bool {
        self.shift < 64
            && self.count_bits >= 2
            && u32::from(self.count_bits) + u32::from(self.previous_bits) + LEAST_TIME_BITS
                <= u64::BITS
            && self.keeps_previous() == keeps_previous
            && self.previous_bits <= self.count_bits
    }

    /// The strategy's number, log2 of a tick in nanoseconds, and the bits of both counts.
    #[must_use]
    pub const fn parts(self) -> [u8; 4] {
        [
            self.strategy,
            self.shift,
            self.count_bits,
            self.previous_bits,
        ]
    }

    /// Converts a duration to ticks that are never shorter, in spite of other roundings down.
    #[must_use]
    pub(super) const fn whole_ticks(self, ns: u64) -> u64 {
        if self.shift == 0 {
            ns
        } else {
            ns.div_ceil(1 << self.shift) + 1
        }
    }
}
