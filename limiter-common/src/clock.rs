//! The clock for decisions on packets.

/// A source of time.
pub trait Clock {
    /// Nanoseconds since any fixed moment. CPUs may differ by microseconds.
    fn now(&self) -> u64;
}
