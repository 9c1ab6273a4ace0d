//! Coarse times: ticks of 2^30 ns, a little more than a second.

/// A time in ticks, by the clock of the decisions.
///
/// Times are compared modulo their bits. Clocks differ, above all between CPUs: a time up to
/// [`Tick::AHEAD`] ticks ahead counts as now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Tick(pub u32);

impl Tick {
    /// The bits of nanoseconds in a tick.
    pub const BITS: u32 = 30;

    /// The bits of ticks that records keep: they repeat after nine years.
    pub const KEPT_BITS: u32 = 28;

    /// The number of ticks, an hour and more, that one clock may be ahead of another.
    pub const AHEAD: u32 = 1 << 12;

    /// The number of ticks in a minute, the length of a shortage after its last refusal.
    pub const MINUTE: u32 = 56;

    const KEPT: u32 = (1 << Self::KEPT_BITS) - 1;

    /// The tick of a time in nanoseconds.
    #[must_use]
    #[inline(always)]
    pub const fn of_ns(ns: u64) -> Self {
        Self((ns >> Self::BITS & 0xffff_ffff) as u32)
    }

    /// The part of the tick that records keep.
    #[must_use]
    #[inline(always)]
    pub const fn kept(self) -> u32 {
        self.0 & Self::KEPT
    }

    /// The number of ticks from a kept tick until this one.
    #[must_use]
    #[inline(always)]
    pub const fn since_kept(self, kept: u32) -> u32 {
        let ticks = self.0.wrapping_sub(kept) & Self::KEPT;
        if ticks > Self::KEPT - Self::AHEAD {
            0
        } else {
            ticks
        }
    }

    /// Whether a kept tick is after this one, by at most `most` ticks.
    #[must_use]
    #[inline(always)]
    pub const fn is_before_kept(self, kept: u32, most: u32) -> bool {
        let ticks = kept.wrapping_sub(self.0) & Self::KEPT;
        ticks != 0 && ticks <= most
    }

    /// The number of ticks from another tick until this one.
    #[must_use]
    #[inline(always)]
    pub const fn since(self, other: Self) -> u32 {
        let ticks = self.0.wrapping_sub(other.0);
        if ticks > u32::MAX - Self::AHEAD {
            0
        } else {
            ticks
        }
    }
}
