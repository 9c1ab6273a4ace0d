//! The bounds of compiled tables, and the reasons why a policy cannot be compiled.

use limiter_common::limit::MAX_LIMITS;
use thiserror::Error;

use crate::policy::{Rate, TooManyUnits};

/// The reason why the datapath cannot hold a policy.
#[derive(Debug, Error)]
pub enum CompileError {
    /// A set of limits would not fit a word.
    #[error("{0} limits are configured, but the maximum is {MAX_LIMITS}")]
    TooManyLimits(usize),
    /// No bucket can count this rate.
    #[error("limit {limit}: a bucket cannot count {rate:?}")]
    Rate {
        /// The limit's name.
        limit: String,
        /// The rate.
        rate: Rate,
    },
    /// The tables would be too large for memory.
    #[error(
        "overrides, subscribers, lists and matches divide addresses and ports into {0} ranges, but \
         the maximum is {MOST_RANGES}"
    )]
    TooManyRanges(usize),
    /// The table of names would take too much memory.
    #[error(
        "zones, names in matches and public suffixes have so many different numbers of labels that {0} names \
         must be kept, but the maximum is {MOST_NAMES}"
    )]
    TooManyNames(usize),
    /// There are more units than numbers.
    #[error(transparent)]
    TooManyUnits(#[from] TooManyUnits),
}

/// The most names in the table of names: each takes at most 128 bytes.
pub(super) const MOST_NAMES: usize = 1 << 20;

/// The most ranges, all dimensions together.
pub(super) const MOST_RANGES: usize = 1 << 24;

/// Converts a table index: no table has more entries than a policy file has bytes.
pub(super) fn index(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}
