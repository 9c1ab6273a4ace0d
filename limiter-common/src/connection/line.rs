//! Lines of words that change only by compare-and-swap, so that no CPU waits for another. Each key has two
//! lines, and begins a word in the line with more room: so a half-full table has room for every key.

/// The number of words in a line, 64 bytes.
pub const SLOTS: usize = 8;

/// The bits of a word's index that are its slot in the line.
const SLOT_BITS: u32 = SLOTS.trailing_zeros();

/// The words of a line.
pub trait Slots {
    /// Returns a word.
    fn get(&self, slot: usize) -> u64;
}

/// The words of a line that match a search, and the free words, as bits by slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotMatches {
    /// The matching words.
    pub found: u32,
    /// The free words.
    pub free: u32,
}

impl SlotMatches {
    /// Searches a line. `differs` returns 0 for a matching word, and else a number below 2^63. A word of 0 is
    /// free.
    #[inline(always)]
    pub(super) fn of<S: Slots>(slots: &S, differs: impl Fn(u64) -> u64) -> Self {
        let mut seen = Self::default();
        for slot in 0..SLOTS {
            let word = slots.get(slot);
            // Not comparisons: the verifier would walk each set of slots.
            let free = bit(!word & word.wrapping_sub(1));
            seen.free |= free << slot;
            seen.found |= (bit(differs(word).wrapping_sub(1)) & !free) << slot;
        }
        seen
    }

    /// The same as one number.
    #[must_use]
    #[inline(always)]
    pub const fn number(self) -> u32 {
        self.found | self.free << SLOTS
    }

    /// The inverse of [`Self::number`].
    #[must_use]
    #[inline(always)]
    pub const fn of_number(number: u32) -> Self {
        const LINE: u32 = (1 << SLOTS) - 1;
        Self {
            found: number & LINE,
            free: number >> SLOTS & LINE,
        }
    }
}

#[inline(always)]
const fn bit(word: u64) -> u32 {
    (word >> 63) as u32
}

/// The search results of both lines of a key: bits of the first line, above them bits of the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyMatches {
    /// The matching words.
    pub(super) found: u32,
    /// The free words of the line that has more of them.
    pub(super) free: u32,
}

impl KeyMatches {
    #[inline(always)]
    pub(super) const fn new(first: SlotMatches, second: SlotMatches) -> Self {
        let is_second = second.free.count_ones() > first.free.count_ones();
        Self {
            found: first.found | second.found << SLOTS,
            free: if is_second {
                second.free << SLOTS
            } else {
                first.free
            },
        }
    }
}

/// Returns the last word of a set, as a set.
#[inline(always)]
pub(super) const fn last_of(set: u32) -> u32 {
    let highest = 1_u32 << 31;
    set & highest.unbounded_shr(set.leading_zeros())
}

/// Returns the index in the table of the first word in a set, which must not be empty.
#[inline(always)]
pub(super) const fn first_of(set: u32, lines: [u32; 2]) -> u32 {
    let slot = set.trailing_zeros();
    let is_first = slot >> SLOT_BITS == 0;
    let line = if is_first { lines[0] } else { lines[1] };
    line << SLOT_BITS | slot & ((1 << SLOT_BITS) - 1)
}

/// The line of the word at an index.
#[must_use]
#[inline(always)]
pub const fn line_of(at: u32) -> u32 {
    at >> SLOT_BITS
}

/// The slot of the word at an index.
#[must_use]
#[inline(always)]
pub const fn slot_of(at: u32) -> usize {
    at as usize & (SLOTS - 1)
}

/// The index of the word in a slot of a line.
#[must_use]
#[inline(always)]
pub const fn word_at(line: u32, slot: u32) -> u32 {
    line << SLOT_BITS | slot
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Line([u64; SLOTS]);

    impl Slots for Line {
        fn get(&self, slot: usize) -> u64 {
            self.0[slot]
        }
    }

    #[test]
    fn a_look_finds_what_is_sought_and_what_is_free() {
        let line = Line([7, 0, u64::MAX, 7, 1 << 63, 0, 1, 8]);
        let seen = SlotMatches::of(&line, |word| (word ^ 7) & (u64::MAX >> 1));
        assert_eq!(seen.found, 0b1001);
        assert_eq!(seen.free, 0b10_0010);
        assert_eq!(SlotMatches::of_number(seen.number()), seen);
        // A free word never matches, even in a search for 0.
        let seen = SlotMatches::of(&line, |word| word & (u64::MAX >> 1));
        assert_eq!(seen.found, 1 << 4);
    }

    #[test]
    fn a_word_begins_in_the_line_with_more_room() {
        let line = |free| SlotMatches { found: 0, free };
        assert_eq!(KeyMatches::new(line(0b11), line(0b100)).free, 0b11);
        let both = KeyMatches::new(line(1), line(0b110));
        assert_eq!(both.free, 0b110 << SLOTS);
        assert_eq!(first_of(both.free, [5, 9]), word_at(9, 1));
        assert_eq!((line_of(73), slot_of(73)), (9, 1));
        assert_eq!((last_of(0b1011), last_of(0)), (0b1000, 0));
    }
}
