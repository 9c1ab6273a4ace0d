//! The words that window strategies keep: where in a state what is, and how long its ticks are.

use super::Strategy;
#[cfg(not(target_arch = "bpf"))]
use super::rule::Ledger as _;

/// What the bits of a state mean. Four bytes, part of every unit and every budget.
///
/// The state of a window, from the highest bit on: when its current bucket ends, in ticks of
/// 2^`shift` nanoseconds, of which as many bits are kept as there is room for, so that the time
/// wraps; what was counted in it; and what was counted in the one before. The state of a bucket of
/// GCRA is a TAT, all 64 bits of it; [`super::moving_window`] tells that of a moving window.
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
#[cfg(not(target_arch = "bpf"))]
const LEAST_TIME_BITS: u32 = 20;

/// The most bits of what was counted in the bucket before: above that it is rounded up, by less
/// than a 4000th of the limit.
#[cfg(not(target_arch = "bpf"))]
const MOST_PREVIOUS_BITS: u32 = 14;

impl Layout {
    /// That of GCRA.
    pub const GCRA: Self = Self::whole(Strategy::Gcra);

    /// The layout of a strategy that needs none: a state is one word, in ticks of a nanosecond.
    pub(super) const fn whole(strategy: Strategy) -> Self {
        Self::new(strategy, 0, 0, 0)
    }

    const fn new(strategy: Strategy, shift: u8, count_bits: u8, previous_bits: u8) -> Self {
        Self {
            strategy: strategy as u8,
            shift,
            count_bits,
            previous_bits,
        }
    }

    /// By which rule states of this layout are decided on.
    ///
    /// Natively a layout is made of a strategy, or of parts that were checked. The kernel program
    /// reads it from tables that the daemon alone writes, and may have to read any number: it
    /// takes one that it does not know for GCRA, whose arithmetic on any numbers is safe.
    #[must_use]
    #[inline(always)]
    pub const fn strategy(self) -> Strategy {
        match Strategy::of_number(self.strategy) {
            Some(strategy) => strategy,
            None if cfg!(target_arch = "bpf") => Strategy::Gcra,
            None => unreachable!(),
        }
    }

    /// Whether its states are decided on by the same rule as those of another one.
    #[inline(always)]
    pub(super) const fn is_of_strategy_of(self, other: Self) -> bool {
        self.strategy == other.strategy
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

#[cfg(not(target_arch = "bpf"))]
impl Layout {
    /// The most tokens that are counted where only the current bucket is.
    pub(super) const LARGEST_COUNT: u64 = (1 << (u64::BITS - LEAST_TIME_BITS)) - 3;

    /// The most tokens that are counted where the bucket before is, too.
    pub(super) const LARGEST_COUNT_WITH_PREVIOUS: u64 =
        (1 << (u64::BITS - LEAST_TIME_BITS - MOST_PREVIOUS_BITS)) - 3;

    /// The layout of a window strategy that counts up to `count` tokens in periods of `period_ns`
    /// nanoseconds, and keeps what it counted in the bucket before, or not; `None`: there is no
    /// room for so many.
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
        // One more than the count is kept, too: a window that has refused.
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

    /// The layout of those four bytes, as [`Self::parts`] has them; `None`: no strategy has it.
    #[must_use]
    pub fn from_parts([strategy, shift, count_bits, previous_bits]: [u8; 4]) -> Option<Self> {
        let strategy = Strategy::of_number(strategy)?;
        let layout = Self::new(strategy, shift, count_bits, previous_bits);
        ask!(strategy, Rule => Rule::is_layout(layout)).then_some(layout)
    }

    /// Whether it is that of a strategy that needs none.
    pub(super) fn is_whole(self) -> bool {
        self == Self {
            strategy: self.strategy,
            ..Self::GCRA
        }
    }

    /// Whether it is that of a window, which keeps what it counted in the bucket before, or not.
    pub(super) fn is_of_window(self, keeps_previous: bool) -> bool {
        self.shift < 64
            && self.count_bits >= 2
            && u32::from(self.count_bits) + u32::from(self.previous_bits) + LEAST_TIME_BITS
                <= u64::BITS
            && self.keeps_previous() == keeps_previous
            && self.previous_bits <= self.count_bits
    }

    /// The number of the strategy, log2 of the nanoseconds of a tick, and the bits of both counts.
    #[must_use]
    pub const fn parts(self) -> [u8; 4] {
        [
            self.strategy,
            self.shift,
            self.count_bits,
            self.previous_bits,
        ]
    }

    /// Ticks that are not shorter than that duration, whatever was rounded down.
    #[must_use]
    pub(super) const fn whole_ticks(self, ns: u64) -> u64 {
        if self.shift == 0 {
            ns
        } else {
            ns.div_ceil(1 << self.shift) + 1
        }
    }
}
