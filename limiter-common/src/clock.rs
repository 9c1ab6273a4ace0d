//! The time that decisions on packets use.

/// A source of time.
pub trait Clock {
    /// Returns nanoseconds since any fixed moment. CPUs may differ by microseconds.
    fn now(&self) -> u64;
}
