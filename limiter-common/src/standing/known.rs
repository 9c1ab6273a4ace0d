//! The table of known sources: lines of sources and their records.
//!
//! It has the same lines as the [table of buckets](crate::table). The source in the clear replaces
//! the fingerprint, so that sources can be listed, and the record replaces the state.

use super::{Record, SourceId, StandingContext, Tick};
use crate::{
    bucket::Swap,
    table::{self, Eviction, InsertOutcome, Line, WhenFull},
};

/// The maximum number of attempts to change a record while other CPUs change its line.
const ATTEMPTS: u32 = 4;

const LOWEST: u64 = (1 << Tick::KEPT_BITS) - 1;

/// The bits of a weight below the rank.
const BELOW_RANK: u32 = Record::SPAN_BITS + Tick::KEPT_BITS;

/// The record of a source in its line; [`Record::NONE`] if the line does not have it.
#[inline(always)]
pub fn find<L: Line>(line: &L, source: SourceId) -> Record {
    Record(table::read(line, source.0).1)
}

/// Applies `after` to the record of a source in its line; returns the new record. `insert` is
/// [`insert()`], for a missing source.
///
/// If the line has no room for the source, or other CPUs won all attempts, the returned record is
/// not stored, but still decides on this packet.
#[inline(always)]
pub(crate) fn change<L: Line>(
    line: &L,
    source: SourceId,
    after: impl Fn(Record) -> Record,
    insert: impl Fn(Record) -> InsertOutcome,
) -> Record {
    let mut record = Record::NONE;
    for _ in 0..ATTEMPTS {
        let (way, seen) = table::read(line, source.0);
        record = after(Record(seen));
        if record.0 == seen {
            break;
        }
        let swap = if way < L::WAYS {
            table::swap_in_line(line, way, source.0, seen, record.0)
        } else {
            insert(record).or_exchange(|| false)
        };
        match swap {
            Swap::Changed => {}
            // Misplaced: the way became another source's with the same record, and another CPU has
            // changed it since.
            Swap::Stored | Swap::Misplaced | Swap::Unavailable | Swap::Untracked => break,
        }
    }
    record
}

/// The worth of keeping a record: ordered by its rank, then by its span (how long the source has
/// kept coming), then by its last visit. 0: an empty record.
///
/// The span protects against an owner of many addresses, who can prove them all by handshakes: they
/// evict each other, not sources that have come for longer.
#[inline(always)]
pub(crate) const fn weight(record: Record, at: &StandingContext<'_>) -> u64 {
    let rank = record.rank(at);
    if rank == 0 {
        return 0;
    }
    let unseen = at.now.since_kept(record.last());
    (rank as u64) << BELOW_RANK
        | (record.span() as u64) << Tick::KEPT_BITS
        | (u32::MAX - unseen) as u64 & LOWEST
}

/// Inserts a missing source into its line; `weight` is [`weight()`].
#[inline(always)]
pub(crate) fn insert<L: Line>(
    line: &L,
    source: SourceId,
    record: Record,
    weight: impl Fn(Record) -> u64,
) -> InsertOutcome {
    let rank = weight(record) >> BELOW_RANK;
    table::insert_by(line, &ByRank { rank, weight }, source.0, record.0)
}

/// Evicts the record of the least weight, but none of a higher rank than the new one's.
struct ByRank<F> {
    rank: u64,
    weight: F,
}

impl<F: Fn(Record) -> u64> Eviction for ByRank<F> {
    const NO_ROOM: InsertOutcome = InsertOutcome::Unavailable;

    #[inline(always)]
    fn is_same(&self, name: u64, other: u64) -> bool {
        name == other
    }

    #[inline(always)]
    fn weight_of(&self, _: u64, state: u64) -> u64 {
        let weight = (self.weight)(Record(state));
        if weight >> BELOW_RANK > self.rank {
            u64::MAX
        } else {
            weight
        }
    }

    #[inline(always)]
    fn when_full(&self) -> WhenFull {
        WhenFull::Evict
    }

    /// Not counted: the evicted record is worth no more than the new one.
    #[inline(always)]
    fn count_lossy_eviction(&self) {}
}
