//! Counts a connection as the policy says, and subtracts it at its end.

use super::{
    table::{EntryInsertion, EntryTable},
    word::{CountedConnection, VALID, count_of, is_of},
};
use crate::connection::{count::CountTable, count_id::CountId, line::line_of};

/// The number of look-ups of an entry that another CPU may be making valid.
const LOOKUPS: u32 = 4;

/// Makes a limit count a connection under a count id, and under no other; 0: under none. Returns false if
/// there is no room: then it is counted nowhere.
#[inline(always)]
pub fn settle<N: EntryTable, C: CountTable>(
    entries: &N,
    counts: &C,
    counted: CountedConnection,
    count_id: CountId,
) -> bool {
    let Some(at) = entries.find(counted) else {
        return count_id.0 == 0 || open(entries, counts, counted, count_id);
    };
    let word = entries.get(at);
    let old = count_of(word);
    if word & VALID == 0 || !is_of(word, counted) || is_at(counts, old, count_id) {
        // Another CPU is settling it, or it is settled.
        return true;
    }
    // Add first, so that it is never counted too little meanwhile.
    let new = if count_id.0 == 0 {
        None
    } else {
        counts.add(count_id)
    };
    let wanted = match new {
        Some(new) => word ^ u64::from(old) | u64::from(new),
        None => 0,
    };
    if entries.compare_and_swap(at, word, wanted) {
        counts.take_off(old);
    } else if let Some(new) = new {
        counts.take_off(new);
    }
    count_id.0 == 0 || new.is_some()
}

#[inline(always)]
fn is_at<C: CountTable>(counts: &C, at: u32, count_id: CountId) -> bool {
    let [first, second] = count_id.lines();
    let line = line_of(at);
    (line == first || line == second) && count_id.count_in(counts.get(at)) != 0
}

/// Counts a connection under a count id, unless another CPU does so at the same moment; returns false if
/// there is no room.
#[inline(always)]
fn open<N: EntryTable, C: CountTable>(
    entries: &N,
    counts: &C,
    counted: CountedConnection,
    count_id: CountId,
) -> bool {
    let Some(count) = counts.add(count_id) else {
        return false;
    };
    let inserted = entries.insert(counted, count);
    if inserted != EntryInsertion::Valid {
        counts.take_off(count);
    }
    inserted != EntryInsertion::NoRoom
}

/// Subtracts a connection where a limit counts it, unless another CPU does so.
#[inline(always)]
pub fn close<N: EntryTable, C: CountTable>(entries: &N, counts: &C, counted: CountedConnection) {
    for _ in 0..LOOKUPS {
        let Some(at) = entries.find(counted) else {
            return;
        };
        let word = entries.get(at);
        // A CPU that has begun an entry finds it gone.
        let is_removed = is_of(word, counted) && entries.compare_and_swap(at, word, 0);
        if is_removed && word & VALID != 0 {
            return counts.take_off(count_of(word));
        }
    }
}
