//! Entries as words, and the lines where they may be.

use crate::{
    connection::line::line_of, limit::MAX_CONNECTION_LIMITS as MOST_LIMITS, table::HashKey,
};

/// The number of lines of the table: 32 MiB, with room for two million entries, and mostly for three and a
/// half million.
pub const ENTRY_LINES: u32 = 1 << LINE_BITS;

const LINE_BITS: u32 = 19;

/// A word, from the lowest bit on: the index of a word of the counts; the position of the limit; the part of
/// the permuted cookie that the line does not give; the bit of the second line; the bits "begun" and "valid".
/// 0: free.
const COUNT_BITS: u32 = 21;
const LIMIT_BITS: u32 = 3;
const REST_BITS: u32 = COOKIE_BITS - LINE_BITS;
pub(super) const IN_SECOND: u64 = 1 << (COUNT_BITS + LIMIT_BITS + REST_BITS);
pub(super) const BEGUN: u64 = IN_SECOND << 1;
pub(super) const VALID: u64 = IN_SECOND << 2;

/// The bits that identify an entry's connection, limit, and line of its two.
pub(super) const NAME: u64 = BEGUN - (1 << COUNT_BITS);

/// The bits kept of a cookie. The kernel counts cookies up from 1, and in an interrupt during that, down from
/// -1.
const COOKIE_BITS: u32 = 56;

/// The bits of half a cookie.
const HALF: u32 = COOKIE_BITS / 2;

const _: () = {
    assert!(VALID == 1 << 63, "a word is full");
    assert!(MOST_LIMITS == 1 << LIMIT_BITS);
    assert!(
        crate::connection::count::LINES as usize * crate::connection::line::SLOTS
            == 1 << COUNT_BITS
    );
};

/// A connection's name in entries: its socket's cookie, permuted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name(pub u64);

/// A connection and the position of a limit among the limits on connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedConnection {
    /// The connection.
    pub name: Name,
    /// The position, below [`MOST_LIMITS`].
    pub limit: u32,
}

impl Name {
    /// Makes the name of the connection with that socket cookie.
    #[must_use]
    #[inline(always)]
    pub const fn new(hash_key: &HashKey, cookie: u64) -> Self {
        let (mut high, mut low) = (cookie >> HALF & HALF_MASK, cookie & HALF_MASK);
        let mut round = 0;
        while round < FEISTEL_ROUNDS {
            (high, low) = (low, high ^ mixed(hash_key, round, low));
            round += 1;
        }
        Self(high << HALF | low)
    }

    /// Returns the cookie.
    #[must_use]
    pub const fn cookie(self, hash_key: &HashKey) -> u64 {
        let (mut high, mut low) = (self.0 >> HALF, self.0 & HALF_MASK);
        let mut round = FEISTEL_ROUNDS;
        while round > 0 {
            round -= 1;
            (high, low) = (low ^ mixed(hash_key, round, high), high);
        }
        let unused = u64::BITS - COOKIE_BITS;
        (((high << HALF | low) << unused).cast_signed() >> unused).cast_unsigned()
    }

    const fn rest(self) -> u64 {
        self.0 & ((1 << REST_BITS) - 1)
    }
}

const HALF_MASK: u64 = (1 << HALF) - 1;

/// With three rounds of a good hash, names look random to anyone without the secret.
const FEISTEL_ROUNDS: u64 = 3;

#[inline(always)]
const fn mixed(hash_key: &HashKey, round: u64, half: u64) -> u64 {
    hash_key.word_hash(half | (round + 1) << 60) & HALF_MASK
}

impl CountedConnection {
    /// Returns its two lines in the table of entries.
    #[inline(always)]
    pub(super) const fn lines(self) -> [u32; 2] {
        let first = (self.name.0 >> REST_BITS) as u32 ^ spread(self.limit);
        [first, first ^ step(self.name)]
    }

    /// The bits of [`NAME`] in the first line.
    #[inline(always)]
    pub(super) const fn in_first(self) -> u64 {
        (self.name.rest() << LIMIT_BITS | self.limit as u64) << COUNT_BITS
    }

    /// Reads the word at an index; `None`: it is not a valid entry.
    const fn of_entry(at: u32, word: u64) -> Option<Self> {
        let Some(limit) = limit_of(word) else {
            return None;
        };
        let rest = word >> (COUNT_BITS + LIMIT_BITS) & ((1 << REST_BITS) - 1);
        let name = Name(rest);
        let step = if word & IN_SECOND == 0 { 0 } else { step(name) };
        let first = line_of(at) ^ step ^ spread(limit);
        Some(Self {
            name: Name((first as u64) << REST_BITS | rest),
            limit,
        })
    }
}

/// Returns a number that moves the entries of one connection to other lines for each limit.
#[inline(always)]
const fn spread(limit: u32) -> u32 {
    limit << (LINE_BITS - LIMIT_BITS)
}

/// Returns the step between the two lines of an entry.
#[inline(always)]
const fn step(name: Name) -> u32 {
    low(name.0, LINE_BITS) | 1
}

/// Returns the index of the counts word in an entry.
#[inline(always)]
pub(super) const fn count_of(word: u64) -> u32 {
    low(word, COUNT_BITS)
}

/// Returns the lowest `bits` of a word, fewer than 32.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the rest is masked off")]
const fn low(word: u64, bits: u32) -> u32 {
    word as u32 & ((1 << bits) - 1)
}

/// Whether a word from an earlier search still has the same name, in either line.
#[inline(always)]
pub(super) const fn is_of(word: u64, counted: CountedConnection) -> bool {
    word != 0 && (word ^ counted.in_first()) & NAME & !IN_SECOND == 0
}

/// Makes a begun entry for that index.
#[inline(always)]
pub(super) const fn begun(counted: CountedConnection, count: u32, at: u32) -> u64 {
    let is_first = line_of(at) == counted.lines()[0];
    let in_line = if is_first { 0 } else { IN_SECOND };
    counted.in_first() | in_line | count as u64 | BEGUN
}

/// Returns the position of the limit that counts a connection in that word, or `None` if it is not a valid
/// entry.
#[must_use]
pub const fn limit_of(word: u64) -> Option<u32> {
    if word & VALID == 0 {
        return None;
    }
    Some(low(word >> COUNT_BITS, LIMIT_BITS))
}

/// Returns the socket's cookie of the connection recorded in the word at an index.
#[must_use]
pub fn cookie_of(hash_key: &HashKey, at: u32, word: u64) -> Option<u64> {
    CountedConnection::of_entry(at, word).map(|counted| counted.name.cookie(hash_key))
}
