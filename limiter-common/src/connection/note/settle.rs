//! Counts a connection as the policy says, and subtracts it at its end.

use super::{
    table::{NoteInsertion, Notes},
    word::{CountedConnection, VALID, count_of, is_of},
};
use crate::connection::{count::Counts, line::line_of, place::Place};

/// The number of look-ups of a note that another CPU may be making valid.
const LOOKS: u32 = 4;

/// Makes a limit count a connection at a place, and nowhere else; place 0: nowhere. Returns false if there is
/// no room: then it is counted nowhere.
#[inline(always)]
pub fn settle<N: Notes, C: Counts>(
    notes: &N,
    counts: &C,
    counted: CountedConnection,
    place: Place,
) -> bool {
    let Some(at) = notes.find(counted) else {
        return place.0 == 0 || open(notes, counts, counted, place);
    };
    let word = notes.get(at);
    let old = count_of(word);
    if word & VALID == 0 || !is_of(word, counted) || is_at(counts, old, place) {
        // Another CPU is settling it, or it is settled.
        return true;
    }
    // Add first, so that it is never counted too little meanwhile.
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

#[inline(always)]
fn is_at<C: Counts>(counts: &C, at: u32, place: Place) -> bool {
    let [first, second] = place.lines();
    let line = line_of(at);
    (line == first || line == second) && place.count_in(counts.get(at)) != 0
}

/// Counts a connection at a place, unless another CPU does so at the same moment; returns false if there is
/// no room.
#[inline(always)]
fn open<N: Notes, C: Counts>(
    notes: &N,
    counts: &C,
    counted: CountedConnection,
    place: Place,
) -> bool {
    let Some(count) = counts.add(place) else {
        return false;
    };
    let inserted = notes.insert(counted, count);
    if inserted != NoteInsertion::Valid {
        counts.take_off(count);
    }
    inserted != NoteInsertion::NoRoom
}

/// Subtracts a connection where a limit counts it, unless another CPU does so.
#[inline(always)]
pub fn close<N: Notes, C: Counts>(notes: &N, counts: &C, counted: CountedConnection) {
    for _ in 0..LOOKS {
        let Some(at) = notes.find(counted) else {
            return;
        };
        let word = notes.get(at);
        // A CPU that has begun a note finds it gone.
        let is_removed = is_of(word, counted) && notes.compare_and_swap(at, word, 0);
        if is_removed && word & VALID != 0 {
            return counts.take_off(count_of(word));
        }
    }
}
