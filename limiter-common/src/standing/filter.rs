//! The filter of sources with a standing: a blocked Bloom filter (Putze, Sanders and Singler, "Cache-, Hash- and
//! Space-Efficient Bloom Filters", 2007), small enough for a CPU's cache. In a shortage most packets come from sources
//! without a standing, and the table of known sources is in no cache.
//!
//! The map holds a header and two halves. The half in force answers. Every bit is set in both halves, **before** the
//! record that it stands for is stored, and a bit of the half in force is never cleared. To forget sources, userspace
//!
//! 1. waits until no program runs that began while the idle half was in force,
//! 2. clears the idle half,
//! 3. waits until no program runs that began before: such a program may have set bits that are cleared now, but has then
//!    stored its record,
//! 4. sets the bits of the records in the table, also of sources in locked ways, which may stay,
//! 5. puts the half in force.
//!
//! So at any time, also if userspace is killed between two steps, the half in force has the bits of every record that
//! gives a standing.

use super::{Kind, Record};

/// The number of words before the halves, a cache line. The first is the number of the half in force.
pub const HEADER_WORDS: u32 = 8;

/// The number of halves.
pub const HALVES: u32 = 2;

/// The number of words in the largest half: 1 MiB, as large as the second cache of a CPU.
const MOST_WORDS: u32 = 1 << 17;

/// A word of the filter, shared by all CPUs.
pub trait FilterWord {
    /// Returns the word's value.
    fn get(&self) -> u64;
    /// Sets bits of the word, in one atomic step.
    fn set(&self, bits: u64);
}

/// The place of a source in each half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterPlace {
    words: u32,
    word: u32,
    /// The source's bits in its word.
    pub bits: u64,
}

impl FilterPlace {
    /// The place of the source with this hash beside a table of so many lines, a power of two.
    #[must_use]
    #[inline(always)]
    pub const fn new(hash: u64, lines: u32) -> Self {
        let words = words(lines);
        // The lowest bits choose the line of the table, too; the bits from 32 on choose first tries.
        Self {
            words,
            word: (hash & 0xffff_ffff) as u32 & words.wrapping_sub(1),
            bits: bit(hash >> 20) | bit(hash >> 26) | bit(hash >> 52) | bit(hash >> 58),
        }
    }

    /// The index in the map of the word in a half.
    #[must_use]
    #[inline(always)]
    pub const fn index(&self, half: u32) -> u32 {
        HEADER_WORDS + (half & 1) * self.words + self.word
    }
}

/// The bit with the number in the lowest six bits.
#[inline(always)]
const fn bit(number: u64) -> u64 {
    1 << (number & 63)
}

/// The number of words in the map beside a table of so many lines, a power of two.
#[must_use]
pub const fn words_in_map(lines: u32) -> u32 {
    HEADER_WORDS + HALVES * words(lines)
}

/// The number of words in a half. A line has one word, so a full table has 16 bits for each source, up to half a
/// million sources.
#[inline(always)]
const fn words(lines: u32) -> u32 {
    if lines > MOST_WORDS {
        MOST_WORDS
    } else {
        lines
    }
}

impl Record {
    /// Whether the record gives its source a standing, or has given it one before it expired.
    #[must_use]
    #[inline(always)]
    pub const fn is_in_filter(self) -> bool {
        !matches!(self.kind(), Kind::Nothing | Kind::Visited)
    }
}
