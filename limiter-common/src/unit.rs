//! The numbers of units, and the tables that hold them.
//!
//! A GCRA state is a time in ticks. Its worth in tokens depends on the emission interval and the
//! tick length of the limit that wrote it. A state of another strategy has its own
//! [layout](crate::strategy::Layout), and a token is a packet, a byte or a new connection. So every
//! state names its unit by number. Units make states of different limits and policies comparable
//! and exchangeable.

pub use crate::strategy::Unit;

/// The number of bits of a unit's number.
pub const UNIT_BITS: u32 = 16;

/// The number of unit numbers.
pub const MAX_UNITS: u32 = 1 << UNIT_BITS;

/// The bit of a unit's number that marks states other than TATs in nanoseconds.
pub const ODD_UNIT: u32 = MAX_UNITS / 2;

/// The maximum number of units of each kind: TATs in nanoseconds, and all others.
pub const MAX_UNITS_OF_KIND: u32 = ODD_UNIT;

/// A table of units by number.
pub trait UnitTable {
    /// The unit with this number.
    fn unit(&self, number: u32) -> Option<&Unit>;

    /// [`Unit::exchange`] between units given by number; a bucket in an unknown unit owes nothing.
    ///
    /// In the kernel program this and [`Self::weight`] are separate functions, so the verifier
    /// walks them once.
    #[inline(always)]
    fn exchange(&self, from: u32, to: u32, now_ns: u64, state: u64) -> u64 {
        match (self.unit(from), self.unit(to)) {
            (Some(from), Some(to)) => to.exchange(from, now_ns, state),
            _ => 0,
        }
    }

    /// [`Unit::weight`] by the unit's number; an unknown unit counts as TATs in nanoseconds.
    #[inline(always)]
    fn weight(&self, unit: u32, now_ns: u64, state: u64) -> u64 {
        match self.unit(unit) {
            Some(unit) => unit.weight(now_ns, state),
            None => state.saturating_sub(now_ns),
        }
    }
}
