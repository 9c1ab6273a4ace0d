//! Counts in lines of words that are only swapped, so that no CPU waits for another.
//!
//! A word is the tag of a [`Place`] and a count; 0 is free. If two CPUs count the first two
//! connections of an owner at one moment, it may get two words. So its connections are the sum of all
//! of its words, and its count is exact without a lock.

use super::Place;

/// The number of words in a line.
pub const SLOTS: usize = 16;

/// The number of words in half a line.
pub const HALF: usize = SLOTS / 2;

/// The number of lines of the table.
pub const LINES: u32 = 1 << 16;

/// The most connections that a word counts.
pub const MOST_OPEN: u64 = Place::BELOW_TAG;

/// How many words are looked at to add a connection: first those that have the tag, then free ones,
/// too.
const STEPS_TO_ADD: usize = 3 * SLOTS;

/// How many words are looked at to take one off.
const STEPS_TO_TAKE_OFF: usize = 4 * SLOTS;

/// The words of a line.
pub trait Slots {
    /// Returns a word.
    fn get(&self, slot: usize) -> u64;

    /// Stores `wanted` if the word is still `seen`; returns whether it was.
    fn compare_and_swap(&self, slot: usize, seen: u64, wanted: u64) -> bool;
}

/// Returns how many connections are open at a place.
#[inline(always)]
pub fn open<S: Slots>(slots: &S, place: Place) -> u64 {
    open_in_half(slots, place, 0) + open_in_half(slots, place, HALF)
}

/// Returns how many of them are counted in the half of the line that begins with a slot.
#[inline(always)]
pub fn open_in_half<S: Slots>(slots: &S, place: Place, first: usize) -> u64 {
    let mut sum = 0;
    for slot in 0..HALF {
        sum += place.count_in(slots.get(first + slot));
    }
    sum
}

/// Counts one more connection at a place; returns false if the line has no room for it.
#[inline(always)]
pub fn add<S: Slots>(slots: &S, place: Place) -> bool {
    for step in 0..STEPS_TO_ADD {
        let slot = step % SLOTS;
        let seen = slots.get(slot);
        let count = place.count_in(seen);
        let goes_on = count != 0 && count < MOST_OPEN;
        let begins = seen == 0 && step >= SLOTS;
        let wanted = if goes_on { seen + 1 } else { place.tag() + 1 };
        if (goes_on || begins) && slots.compare_and_swap(slot, seen, wanted) {
            return true;
        }
    }
    false
}

/// Counts one connection less at a place; returns false if none was counted.
#[inline(always)]
pub fn take_off<S: Slots>(slots: &S, place: Place) -> bool {
    for step in 0..STEPS_TO_TAKE_OFF {
        let slot = step % SLOTS;
        let seen = slots.get(slot);
        let count = place.count_in(seen);
        let wanted = if count == 1 { 0 } else { seen.wrapping_sub(1) };
        if count != 0 && slots.compare_and_swap(slot, seen, wanted) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    extern crate std;

    use core::cell::Cell;

    use super::*;

    #[derive(Default)]
    struct Words([Cell<u64>; SLOTS]);

    impl Slots for Words {
        fn get(&self, slot: usize) -> u64 {
            self.0[slot].get()
        }

        fn compare_and_swap(&self, slot: usize, seen: u64, wanted: u64) -> bool {
            let holds = self.0[slot].get() == seen;
            if holds {
                self.0[slot].set(wanted);
            }
            holds
        }
    }

    fn place(number: u64) -> Place {
        Place((number << 32) | Place::LOWEST_OF_TAG)
    }

    #[test]
    fn what_was_added_is_taken_off() {
        let words = Words::default();
        for _ in 0..5 {
            assert!(add(&words, place(1)));
        }
        assert!(add(&words, place(2)));
        assert_eq!(open(&words, place(1)), 5);
        assert_eq!(open(&words, place(2)), 1);
        assert_eq!(open(&words, place(3)), 0);
        for left in (0..5).rev() {
            assert!(take_off(&words, place(1)));
            assert_eq!(open(&words, place(1)), left);
        }
        assert!(!take_off(&words, place(1)));
        assert_eq!(open(&words, place(2)), 1);
        assert!(take_off(&words, place(2)));
        assert!(words.0.iter().all(|word| word.get() == 0));
    }

    #[test]
    fn a_full_line_has_no_room_for_another_owner() {
        let words = Words::default();
        for number in 0..SLOTS as u64 {
            assert!(add(&words, place(number)));
        }
        assert!(!add(&words, place(99)));
        assert!(add(&words, place(0)));
        assert!(take_off(&words, place(3)));
        assert!(add(&words, place(99)));
        assert_eq!(open(&words, place(99)), 1);
    }

    #[test]
    fn two_words_of_one_owner_count_together() {
        let words = Words::default();
        words.0[4].set(place(7).tag() + 2);
        words.0[9].set(place(7).tag() + 3);
        assert_eq!(open(&words, place(7)), 5);
        for left in (0..5).rev() {
            assert!(take_off(&words, place(7)));
            assert_eq!(open(&words, place(7)), left);
        }
    }

    #[test]
    fn a_word_that_is_full_is_followed_by_another() {
        let words = Words::default();
        words.0[0].set(place(7).tag() + MOST_OPEN);
        assert!(add(&words, place(7)));
        assert_eq!(open(&words, place(7)), MOST_OPEN + 1);
    }
}
