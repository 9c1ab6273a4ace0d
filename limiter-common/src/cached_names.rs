//! Cached names: names in recent DNS queries. Limits on new names charge only names outside this table.
//!
//! The table consists of lines of [`WAYS`] hashes; a name's hash selects its line. In a full line, the least recently
//! queried name makes room for a new one. Names queried regularly therefore stay, and one-off names do not displace
//! them: to evict a name, a sender must enter a whole line's worth of new names of that line between two queries for
//! the name.

use crate::{policy::Features, sieve::Word};

/// The number of names in a line.
pub const WAYS: usize = 8;

/// The maximum number of lines. The lower bits of a hash select the line, the upper bits identify the name in it.
pub const MOST_LINES: u32 = 1 << TIME_BITS;

/// One time unit is 2^30 nanoseconds, about a second.
const TICK_BITS: u32 = 30;

/// The lower bits of a word are the time of the name's last query; the others are part of the name's hash.
const TIME_BITS: u32 = 24;
const TIME: u64 = (1 << TIME_BITS) - 1;

/// The minimum age, in time units, at which a query refreshes a name's time: most queries write nothing.
const REFRESHED_AFTER: u64 = 16;

/// Clocks of CPUs differ, and packets wait between stages: a time up to this many units ahead counts as now.
const AHEAD: u64 = 16;

/// The longest time for which names can stay cached, in nanoseconds: beyond half the range of `TIME`, an old time
/// would look like a later one.
pub const LONGEST_NS: u64 = (TIME / 2) << TICK_BITS;

/// Some names, each with the time of its last query: a cache line.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct NameLine([Word; WAYS]);

impl NameLine {
    /// The number of names cached at `now_ns`, a time of the decision's clock.
    #[cfg(not(target_arch = "bpf"))]
    pub fn count(&self, cached_for_ns: u64, now_ns: u64) -> usize {
        let words = self.0.iter().map(Word::get);
        let cached = words.filter(|word| *word != 0 && age(*word, now_ns) <= ticks(cached_for_ns));
        cached.count()
    }
}

/// The table of cached names.
pub trait NameLines {
    /// The number of lines, a power of two; 0: no table.
    fn count(&self) -> u64;

    /// Returns the line at an index.
    fn line(&self, index: u32) -> Option<&NameLine>;

    /// Stores `new` in a word of a line if it still holds `seen`.
    fn swap(&self, word: &Word, seen: u64, new: u64);
}

/// Returns whether the name with this keyed hash is cached, and if so, refreshes its time.
#[must_use]
#[inline(always)]
pub fn is_cached<L: NameLines>(lines: &L, features: &Features, hash: u64, now_ns: u64) -> bool {
    let Some(line) = line_of(lines, hash) else {
        return false;
    };
    for word in &line.0 {
        let seen = word.get();
        if seen & !TIME == name_of(hash) {
            let age = age(seen, now_ns);
            if age > ticks(features.names_cached_for_ns) {
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

/// Enters the name with this keyed hash. If another CPU changes the same word at that moment, the name stays new.
#[inline(always)]
pub fn enter<L: NameLines>(lines: &L, hash: u64, now_ns: u64) {
    let Some(line) = line_of(lines, hash) else {
        return;
    };
    let (mut oldest, mut greatest, mut replaced) = (0, 0, 0);
    for (way, word) in line.0.iter().enumerate() {
        let seen = word.get();
        let age = if seen == 0 || seen & !TIME == name_of(hash) {
            // An empty word, or the name itself with an expired time.
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

/// The name's bits in a word. They are never all 0, as an empty word is.
#[inline(always)]
const fn name_of(hash: u64) -> u64 {
    if hash & !TIME == 0 {
        TIME + 1
    } else {
        hash & !TIME
    }
}

/// The word of a name queried at `now_ns`.
#[inline(always)]
const fn entry(hash: u64, now_ns: u64) -> u64 {
    name_of(hash) | (now_ns >> TICK_BITS) & TIME
}

/// The units of time since the last query for a word's name.
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
