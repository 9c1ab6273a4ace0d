//! What a bucket holds, in terms for people.

/// What a bucket holds, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Whole tokens left.
    pub remaining: u64,
    /// Nanoseconds until one token can be spent.
    pub retry_in_ns: u64,
    /// Nanoseconds until the bucket is full.
    pub reset_in_ns: u64,
}

/// A bucket after a decision, for a request of one cost, as Boulder's spend returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Whole tokens left.
    pub remaining: u64,
    /// Nanoseconds until a request of the same cost passes; `None`: it never does, because it costs
    /// more than a full bucket holds.
    pub retry_in_ns: Option<u64>,
    /// Nanoseconds until the bucket is full.
    pub reset_in_ns: u64,
}
