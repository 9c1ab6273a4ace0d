//! The number of open connections of each key.
//!
//! A word is the tag of a [`CountId`] and a count; 0 is free. If two CPUs count the first two connections of
//! a key at the same moment, the key may get two words. So its connections are the sum of all its words,
//! and the count is exact without a lock. A connection is subtracted from the word that counts it, by the
//! word's index, so the end of a connection never fails.

use super::{
    CountId,
    line::{KeyMatches, SlotMatches, Slots, first_of, last_of},
};

/// The number of lines of the table: 16 MiB, which has room for a million keys.
pub const LINES: u32 = 1 << 18;

/// The most connections that one word counts.
pub const MOST_OPEN: u64 = CountId::BELOW_TAG;

/// The number of attempts to count a connection while other CPUs change the same words.
const TRIES: u32 = 16;

/// The number of attempts on one word before another is begun.
const TRIES_OF_ONE: u32 = 4;

/// The table of counts.
pub trait CountTable {
    /// Calls [`search`] on a line.
    fn search(&self, line: u32, count_id: CountId) -> SlotMatches;

    /// The word at an index.
    fn get(&self, at: u32) -> u64;

    /// Stores `wanted` if the word is still `seen`; returns whether it was.
    fn compare_and_swap(&self, at: u32, seen: u64, wanted: u64) -> bool;

    /// Subtracts 1 from the word at an index; returns its value before.
    fn count_down(&self, at: u32) -> u64;

    /// Calls [`try_to_add`].
    fn try_to_add(&self, count_id: CountId, attempt: u32) -> u32
    where
        Self: Sized,
    {
        try_to_add(self, count_id, attempt)
    }

    /// Calls [`add`].
    fn add(&self, count_id: CountId) -> Option<u32>
    where
        Self: Sized,
    {
        add(self, count_id)
    }

    /// Calls [`take_off`].
    fn take_off(&self, at: u32)
    where
        Self: Sized,
    {
        take_off(self, at);
    }
}

/// Finds the words of a line that count the connections of a count id.
#[inline(always)]
pub fn search<S: Slots>(slots: &S, count_id: CountId) -> SlotMatches {
    SlotMatches::of(slots, |word| (word ^ count_id.0) >> CountId::COUNT_BITS)
}

/// Returns the number of connections of a count id counted in a line, one of its two.
#[inline(always)]
pub fn open_in<S: Slots>(slots: &S, count_id: CountId) -> u64 {
    let mut sum = 0;
    for slot in 0..super::line::SLOTS {
        sum += count_id.count_in(slots.get(slot));
    }
    sum
}

/// Counts one more connection under a count id; returns the index of the word that counts it, or `None` if
/// there is no room.
#[inline(always)]
pub fn add<C: CountTable>(counts: &C, count_id: CountId) -> Option<u32> {
    for attempt in 0..TRIES {
        match counts.try_to_add(count_id, attempt) {
            AGAIN => {}
            at => return Some(at),
        }
    }
    None
}

/// Stands in for an index: another attempt may find room.
const AGAIN: u32 = u32::MAX;

/// Makes one attempt to count a connection; returns the word's index, or `u32::MAX` if another CPU changed
/// the word or there is no room.
#[inline(always)]
pub fn try_to_add<C: CountTable>(counts: &C, count_id: CountId, attempt: u32) -> u32 {
    let lines = count_id.lines();
    let [first, second] = lines.map(|line| counts.search(line, count_id));
    let KeyMatches { found, free } = KeyMatches::new(first, second);
    // A word may be full, or changed by many CPUs.
    let goes_on = match attempt / TRIES_OF_ONE {
        0 => found,
        1 => last_of(found),
        _ => 0,
    };
    let candidates = match (goes_on, free) {
        (0, 0) => found,
        (0, _) => free,
        _ => goes_on,
    };
    if candidates == 0 {
        return AGAIN;
    }
    let at = first_of(candidates, lines);
    let seen = counts.get(at);
    let has_room = count_id.is_counted_in(seen) && seen & MOST_OPEN != MOST_OPEN;
    let wanted = if has_room {
        seen + 1
    } else {
        count_id.tag() + 1
    };
    if (has_room || seen == 0) && counts.compare_and_swap(at, seen, wanted) {
        at
    } else {
        AGAIN
    }
}

/// Subtracts a connection from the word at an index, which counts it.
#[inline(always)]
pub fn take_off<C: CountTable>(counts: &C, at: u32) {
    let left = counts.count_down(at).wrapping_sub(1);
    if left & MOST_OPEN == 0 {
        // Fails if another connection is counted there again; its end will free the word.
        counts.compare_and_swap(at, left, 0);
    }
}
