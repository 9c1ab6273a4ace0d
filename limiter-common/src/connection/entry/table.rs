//! The table of entries, and their insertion.

use super::word::{BEGUN, CountedConnection, IN_SECOND, NAME, VALID, begun, is_of};
use crate::connection::line::{KeyMatches, SLOTS, SlotMatches, Slots, first_of, line_of, slot_of};

/// The number of attempts to begin an entry while other CPUs change the same lines.
const TRIES: u32 = 16;

/// The most entries of the same connection and limit, begun at the same moment, to resolve.
const ROUNDS: u32 = 8;

/// The table of entries.
pub trait EntryTable {
    /// Calls [`search`] on a line.
    fn search(&self, line: u32, sought: u64) -> SlotMatches;

    /// The word at an index.
    fn get(&self, at: u32) -> u64;

    /// Stores `wanted` if the word is still `seen`; returns whether it was.
    fn compare_and_swap(&self, at: u32, seen: u64, wanted: u64) -> bool;

    /// Calls [`find`].
    fn find(&self, counted: CountedConnection) -> Option<u32>
    where
        Self: Sized,
    {
        find(self, counted)
    }

    /// Calls [`insert`].
    fn insert(&self, counted: CountedConnection, count: u32) -> EntryInsertion
    where
        Self: Sized,
    {
        insert(self, counted, count)
    }
}

/// The result of inserting an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum EntryInsertion {
    /// The entry is in the table.
    Valid = 0,
    /// Another CPU has recorded the same.
    Twice = 1,
    /// There is no room.
    NoRoom = 2,
}

impl EntryInsertion {
    /// The result with that number.
    #[must_use]
    #[inline(always)]
    pub const fn of_number(number: u32) -> Self {
        match number {
            0 => Self::Valid,
            1 => Self::Twice,
            _ => Self::NoRoom,
        }
    }
}

/// Finds the words of a line with the same [`NAME`] as `sought`.
#[inline(always)]
pub fn search<S: Slots>(slots: &S, sought: u64) -> SlotMatches {
    SlotMatches::of(slots, |word| (word ^ sought) & NAME)
}

#[inline(always)]
fn search_both<N: EntryTable>(entries: &N, counted: CountedConnection) -> KeyMatches {
    let [first, second] = counted.lines();
    let sought = counted.in_first();
    KeyMatches::new(
        entries.search(first, sought),
        entries.search(second, sought | IN_SECOND),
    )
}

/// Returns the index of the entry of a connection by a limit.
#[inline(always)]
pub fn find<N: EntryTable>(entries: &N, counted: CountedConnection) -> Option<u32> {
    let found = search_both(entries, counted).found;
    (found != 0).then(|| first_of(found, counted.lines()))
}

/// Records that a limit counts a connection in the word at the index `count`.
#[inline(always)]
pub fn insert<N: EntryTable>(
    entries: &N,
    counted: CountedConnection,
    count: u32,
) -> EntryInsertion {
    match begin(entries, counted, count) {
        Some(at) => confirm(entries, counted, count, at),
        None => EntryInsertion::NoRoom,
    }
}

#[inline(always)]
fn begin<N: EntryTable>(entries: &N, counted: CountedConnection, count: u32) -> Option<u32> {
    let lines = counted.lines();
    for _ in 0..TRIES {
        let free = search_both(entries, counted).free;
        if free == 0 {
            return None;
        }
        let at = first_of(free, lines);
        if entries.compare_and_swap(at, 0, begun(counted, count, at)) {
            return Some(at);
        }
    }
    None
}

/// Makes a begun entry valid, unless there is another.
#[inline(always)]
fn confirm<N: EntryTable>(
    entries: &N,
    counted: CountedConnection,
    count: u32,
    at: u32,
) -> EntryInsertion {
    let lines = counted.lines();
    let mine = begun(counted, count, at);
    for _ in 0..ROUNDS {
        let others = others(search_both(entries, counted).found, lines, at);
        if others == 0 {
            let valid = mine ^ BEGUN ^ VALID;
            // This fails if the connection is closed by now, or an earlier entry has replaced this one.
            if entries.compare_and_swap(at, mine, valid) {
                return EntryInsertion::Valid;
            }
            return EntryInsertion::Twice;
        }
        let other_at = first_of(others, lines);
        let other = entries.get(other_at);
        if !is_of(other, counted) {
            continue;
        }
        if other & VALID != 0 || other_at < at {
            break;
        }
        entries.compare_and_swap(other_at, other, 0);
    }
    entries.compare_and_swap(at, mine, 0);
    EntryInsertion::Twice
}

/// Removes the word at an index from a set.
#[inline(always)]
const fn others(found: u32, lines: [u32; 2], at: u32) -> u32 {
    let second = if line_of(at) == lines[0] { 0 } else { SLOTS };
    found & !(1 << (slot_of(at) + second))
}
