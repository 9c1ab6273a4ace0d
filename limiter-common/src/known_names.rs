//! Known names: those that DNS queries asked for lately, by which limits on new names tell which are new.
//!
//! A table of lines, each of which has room for the hashes of some names. A name belongs to one line. When
//! that is full, the name that nobody has asked for for longest gives way to a new one. So names that are asked
//! for again and again stay, whatever else is asked for once; and whoever wants to push out one must have as
//! many new names of its line enter, between two queries for it, as a line has.

use crate::{policy::Shape, sieve::Word};

/// The most names of a line.
pub const WAYS: usize = 8;

/// The most lines: the hash's lower bits name a line, and the upper ones the name.
pub const MOST_LINES: u32 = 1 << TIME_BITS;

/// A time counts units of 2^30 nanoseconds, about a second.
const TICK_BITS: u32 = 30;

/// The lower bits of a word are the time at which its name was last asked for, the others belong to the name's
/// hash.
const TIME_BITS: u32 = 24;
const TIME: u64 = (1 << TIME_BITS) - 1;

/// A name's time is written again only if it is that old, so that most queries write nothing.
const REFRESHED_AFTER: u64 = 16;

/// The clocks of CPUs may differ, and packets wait between stages: times of so many units to come are now.
const AHEAD: u64 = 16;

/// The longest time for which names can be known, in nanoseconds: with a longer one the times of two names
/// could not be told apart.
pub const LONGEST_NS: u64 = (TIME / 2) << TICK_BITS;

/// Some names of which each is known for some time: a cache line.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct NameLine([Word; WAYS]);

impl NameLine {
    /// Returns how many of its names were asked for lately enough, at that time of the decision's clock.
    #[cfg(not(target_arch = "bpf"))]
    pub fn count(&self, known_for_ns: u64, now_ns: u64) -> usize {
        let words = self.0.iter().map(Word::get);
        let known = words.filter(|word| *word != 0 && age(*word, now_ns) <= ticks(known_for_ns));
        known.count()
    }
}

/// The table of known names.
pub trait NameLines {
    /// Returns the number of lines, a power of two; 0: there are none.
    fn count(&self) -> u64;

    /// Returns the line at an index.
    fn line(&self, index: u32) -> Option<&NameLine>;

    /// Stores `new` in a word of a line if it still holds `seen`.
    fn swap(&self, word: &Word, seen: u64, new: u64);
}

/// Returns whether the name with that keyed hash was asked for lately, and if so, notes that it is asked for
/// again.
#[must_use]
#[inline(always)]
pub fn is_known<L: NameLines>(lines: &L, shape: &Shape, hash: u64, now_ns: u64) -> bool {
    let Some(line) = line_of(lines, hash) else {
        return false;
    };
    for word in &line.0 {
        let seen = word.get();
        if seen & !TIME == name_of(hash) {
            let age = age(seen, now_ns);
            if age > ticks(shape.names_known_for_ns) {
                return false;
            }
            if age >= REFRESHED_AFTER {
                lines.swap(word, seen, entry(hash, now_ns));
            }
            return true;
        }
    }
    false
}

/// Enters the name with that keyed hash. If another CPU changes the same word at that moment, the name stays
/// new.
#[inline(always)]
pub fn enter<L: NameLines>(lines: &L, hash: u64, now_ns: u64) {
    let Some(line) = line_of(lines, hash) else {
        return;
    };
    let (mut oldest, mut greatest, mut replaced) = (0, 0, 0);
    for (way, word) in line.0.iter().enumerate() {
        let seen = word.get();
        let age = if seen == 0 || seen & !TIME == name_of(hash) {
            // Room, or the name itself, which was known too long ago.
            u64::MAX
        } else {
            age(seen, now_ns) + 1
        };
        if age > greatest {
            (oldest, greatest, replaced) = (way, age, seen);
        }
    }
    lines.swap(&line.0[oldest % WAYS], replaced, entry(hash, now_ns));
}

#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "there are at most MOST_LINES lines"
)]
fn line_of<L: NameLines>(lines: &L, hash: u64) -> Option<&NameLine> {
    lines.line((hash & lines.count().wrapping_sub(1)) as u32)
}

/// Returns the bits of a word that a name has. They are never all 0, which is room.
#[inline(always)]
const fn name_of(hash: u64) -> u64 {
    if hash & !TIME == 0 {
        TIME + 1
    } else {
        hash & !TIME
    }
}

/// Returns the word of a name that was asked for at that time.
#[inline(always)]
const fn entry(hash: u64, now_ns: u64) -> u64 {
    name_of(hash) | (now_ns >> TICK_BITS) & TIME
}

/// Returns how long ago the name of a word was asked for.
#[inline(always)]
const fn age(word: u64, now_ns: u64) -> u64 {
    let age = (now_ns >> TICK_BITS).wrapping_sub(word) & TIME;
    if age > TIME - AHEAD { 0 } else { age }
}

#[inline(always)]
const fn ticks(ns: u64) -> u64 {
    ns >> TICK_BITS
}

#[cfg(test)]
mod tests;
