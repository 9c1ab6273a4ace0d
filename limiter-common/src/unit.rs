//! The numbers of units, and the tables that hold them.
//!
//! A state of GCRA is a time in ticks. What it is worth, in tokens, depends on the emission
//! interval and the tick length of the limit that wrote it; a state of another strategy has its
//! own [layout](crate::strategy::Layout); and a token is a packet, a byte or a new connection. So
//! every state says in which unit it counts, by the unit's number, and whoever knows the units can
//! compare and exchange states of different limits and different policies.

pub use crate::strategy::Unit;

/// How many bits the number of a unit has.
pub const UNIT_BITS: u32 = 16;

/// How many numbers of units there are.
pub const MAX_UNITS: u32 = 1 << UNIT_BITS;

/// The bit by which the number of a unit tells that its states are not TATs in nanoseconds.
pub const ODD_UNIT: u32 = MAX_UNITS / 2;

/// How many units of each kind there may be: those of TATs in nanoseconds, and the others.
pub const MAX_UNITS_OF_KIND: u32 = ODD_UNIT;

/// The units that there are.
pub trait KnownUnits {
    /// The unit of a number.
    fn unit(&self, number: u32) -> Option<&Unit>;

    /// [`Unit::exchange`] between units by their numbers; a bucket in none owes nothing.
    ///
    /// The kernel program makes it a function of its own, which the verifier walks once; so with
    /// the next one.
    #[inline(always)]
    fn exchange(&self, from: u32, to: u32, now_ns: u64, state: u64) -> u64 {
        match (self.unit(from), self.unit(to)) {
            (Some(from), Some(to)) => to.exchange(from, now_ns, state),
            _ => 0,
        }
    }

    /// [`Unit::weight`] by the unit's number; in none it is that of TATs in nanoseconds.
    #[inline(always)]
    fn weight(&self, unit: u32, now_ns: u64, state: u64) -> u64 {
        match self.unit(unit) {
            Some(unit) => unit.weight(now_ns, state),
            None => state.saturating_sub(now_ns),
        }
    }
}
