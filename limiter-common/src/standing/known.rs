//! The table of known sources: lines of sources and their records.
//!
//! It is made of the lines of the [table of buckets](crate::table): a source stands in the clear in
//! place of the fingerprint, so that it can be listed, and its record in place of the state.

use super::{Moment, Record, SourceId, Tick};
use crate::{
    bucket::Swap,
    table::{self, Eviction, Inserted, Line, WhenFull},
};

/// The maximum number of attempts to change a record while other CPUs change its line.
const ATTEMPTS: u32 = 4;

const LOWEST: u64 = (1 << Tick::KEPT_BITS) - 1;

/// The bits of a weight below the rank.
const BELOW_RANK: u32 = Record::SPAN_BITS + Tick::KEPT_BITS;

/// Returns the record of a source in its line.
#[inline(always)]
pub fn look<L: Line>(line: &L, source: SourceId) -> Record {
    Record(table::read(line, source.0).1)
}

/// Changes the record of a source in its line to what `after` makes of it; returns what it is then.
/// `insert` is [`insert()`], for a source that is not there.
///
/// If the line has no room for the source, or other CPUs won all attempts, it returns the record
/// that the source would have, by which this packet is decided on.
#[inline(always)]
pub(crate) fn change<L: Line>(
    line: &L,
    source: SourceId,
    after: impl Fn(Record) -> Record,
    insert: impl Fn(Record) -> Inserted,
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
            // Misplaced: the way became another source's, which had the very same record, and
            // another CPU has changed it since.
            Swap::Stored | Swap::Misplaced | Swap::Unavailable | Swap::Untracked => break,
        }
    }
    record
}

/// Returns how much a record is worth keeping: by its rank, among equals by for how long its source
/// has kept coming, and then by how lately it was seen. 0: nothing is known.
///
/// An owner of many addresses can prove them all by handshakes. They push out each other, and not
/// sources that have come for longer.
#[inline(always)]
pub(crate) const fn weight(record: Record, at: &Moment<'_>) -> u64 {
    let rank = record.rank(at);
    if rank == 0 {
        return 0;
    }
    let unseen = at.now.since_kept(record.last());
    (rank as u64) << BELOW_RANK
        | (record.span() as u64) << Tick::KEPT_BITS
        | (u32::MAX - unseen) as u64 & LOWEST
}

/// Inserts a source that is not there into its line; `weight` is [`weight()`].
#[inline(always)]
pub(crate) fn insert<L: Line>(
    line: &L,
    source: SourceId,
    record: Record,
    weight: impl Fn(Record) -> u64,
) -> Inserted {
    let rank = weight(record) >> BELOW_RANK;
    table::insert_by(line, &ByRank { rank, weight }, source.0, record.0)
}

/// Evicts the record of the least weight, but none of a higher rank than the new one's.
struct ByRank<F> {
    rank: u64,
    weight: F,
}

impl<F: Fn(Record) -> u64> Eviction for ByRank<F> {
    const NO_ROOM: Inserted = Inserted::Unavailable;

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

    /// Nobody counts them: what is forgotten is worth no more than what is new.
    #[inline(always)]
    fn count_lossy_eviction(&self) {}
}
