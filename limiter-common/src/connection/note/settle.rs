//! Has a connection counted where the policy says, and taken off at its end.

use super::{
    table::{Inserted, Notes},
    word::{Counted, VALID, count_of, is_of},
};
use crate::connection::{count::Counts, line::line_of, place::Place};

/// How often to look for a note that another CPU may just be making valid.
const LOOKS: u32 = 4;

/// Has a connection counted by a limit at a place, and nowhere else; 0: nowhere. Returns false if there is
/// no room for it: then it is counted nowhere.
#[inline(always)]
pub fn settle<N: Notes, C: Counts>(notes: &N, counts: &C, counted: Counted, place: Place) -> bool {
    let Some(at) = notes.find(counted) else {
        return place.0 == 0 || open(notes, counts, counted, place);
    };
    let word = notes.get(at);
    let old = count_of(word);
    if word & VALID == 0 || !is_of(word, counted) || is_at(counts, old, place) {
        // Somebody else is about it, or it is settled.
        return true;
    }
    // First there: so it is never counted less often meanwhile.
    let new = if place.0 == 0 {
        None
    } else {
        counts.add(place)
    };
    let wanted = match new {
        Some(new) => word ^ u64::from(old) | u64::from(new),
        None => 0,
    };
    if notes.compare_and_swap(at, word, wanted) {
        counts.take_off(old);
    } else if let Some(new) = new {
        counts.take_off(new);
    }
    place.0 == 0 || new.is_some()
}

/// Returns whether the word at an index counts connections of a place.
#[inline(always)]
fn is_at<C: Counts>(counts: &C, at: u32, place: Place) -> bool {
    let [first, second] = place.lines();
    let line = line_of(at);
    (line == first || line == second) && place.count_in(counts.get(at)) != 0
}

/// Counts a connection at a place, unless another does so at the same moment; returns false if there is
/// no room.
#[inline(always)]
fn open<N: Notes, C: Counts>(notes: &N, counts: &C, counted: Counted, place: Place) -> bool {
    let Some(count) = counts.add(place) else {
        return false;
    };
    let inserted = notes.insert(counted, count);
    if inserted != Inserted::Valid {
        counts.take_off(count);
    }
    inserted != Inserted::NoRoom
}

/// Takes a connection off where a limit counts it, unless somebody else does so.
#[inline(always)]
pub fn close<N: Notes, C: Counts>(notes: &N, counts: &C, counted: Counted) {
    for _ in 0..LOOKS {
        let Some(at) = notes.find(counted) else {
            return;
        };
        let word = notes.get(at);
        // Whoever has begun a note finds it gone.
        let is_removed = is_of(word, counted) && notes.compare_and_swap(at, word, 0);
        if is_removed && word & VALID != 0 {
            return counts.take_off(count_of(word));
        }
    }
}
