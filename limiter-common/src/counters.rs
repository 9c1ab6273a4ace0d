//! Counters as the kernel stores them: one set per CPU, summed by the reader.

pub use crate::traffic::Traffic;
use crate::{
    answer::Answer,
    limit::{LimitId, MAX_LIMIT_IDS},
    reason::REASON_COUNT,
    standing::Standing,
};

/// The maximum number of interfaces of one daemon. Each has its own block of reason counters.
pub const MAX_INTERFACES: u32 = 64;

/// The number of reason counters: a block of [`REASON_COUNT`] for each interface.
pub const REASON_COUNTERS: u32 = MAX_INTERFACES * REASON_COUNT;

/// The number of limit counters: one for each interned id.
pub const LIMIT_COUNTERS: u32 = MAX_LIMIT_IDS;

const STANDINGS: u32 = Standing::Unknown as u32 + 1;

/// The number of counters by standing, kept for limits that reserve: a block of [`Standing::COUNT`]
/// for each interned id.
pub const STANDING_COUNTERS: u32 = MAX_LIMIT_IDS * STANDINGS;

/// The index of a limit's counter for sources of this standing.
#[must_use]
#[inline(always)]
pub const fn standing_counter(limit: LimitId, standing: Standing) -> u32 {
    limit.0 as u32 * STANDINGS + standing as u32
}

/// [`standing_counter`] by the standing's number: with an enum, the verifier would walk all later
/// code once per standing. `None`: no standing has that number.
#[must_use]
#[inline(always)]
pub const fn numbered_standing_counter(limit: LimitId, standing: u32) -> Option<u32> {
    if standing < STANDINGS {
        Some(limit.0 as u32 * STANDINGS + standing)
    } else {
        None
    }
}

const ANSWERS: u32 = 5;

const _: () = assert!(ANSWERS as usize == Answer::COUNT);

/// The number of counters of sent answers: a block of [`Answer::COUNT`] for each interned id.
pub const ANSWER_COUNTERS: u32 = MAX_LIMIT_IDS * ANSWERS;

/// The index of a limit's counter of one kind of answer.
#[must_use]
#[inline(always)]
pub const fn answer_counter(limit: LimitId, answer: Answer) -> u32 {
    limit.0 as u32 * ANSWERS + answer as u32
}

/// The number of counters of the bucket table.
pub const TABLE_COUNTERS: u32 = 1;

/// The index of the bucket table's counter of buckets evicted while in debt.
pub const LOSSY_EVICTIONS: u32 = 0;

/// The effect of one limit on the packets it matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct LimitTraffic {
    /// Packets charged to the limit and passed.
    pub passed: Traffic,
    /// Packets dropped, with this limit as the strictest that denied.
    pub dropped: Traffic,
    /// Packets passed although the bucket had too few tokens, because the limit only observes.
    pub would_drop: Traffic,
}

impl LimitTraffic {
    /// The difference to a part. The part was read at nearly the same time, not the same instant.
    #[must_use]
    pub const fn without(self, part: Self) -> Self {
        Self {
            passed: self.passed.without(part.passed),
            dropped: self.dropped.without(part.dropped),
            would_drop: self.would_drop.without(part.would_drop),
        }
    }
}

impl core::ops::AddAssign for LimitTraffic {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.dropped += other.dropped;
        self.would_drop += other.would_drop;
    }
}
