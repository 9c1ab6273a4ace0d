//! The level of a bucket, in terms for people.

/// The level of a bucket, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The number of whole tokens left.
    pub remaining: u64,
    /// The nanoseconds until one token can be spent.
    pub retry_in_ns: u64,
    /// The nanoseconds until the bucket is full.
    pub reset_in_ns: u64,
}

/// A bucket after a decision, for a request of one cost, as Boulder's spend returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// The number of whole tokens left.
    pub remaining: u64,
    /// The nanoseconds until a request of the same cost passes; `None`: it never does, because it
    /// costs more than a full bucket holds.
    pub retry_in_ns: Option<u64>,
    /// The nanoseconds until the bucket is full.
    pub reset_in_ns: u64,
}
