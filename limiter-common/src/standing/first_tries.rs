//! First tries: who was refused as unknown a short time ago.
//!
//! A line of 64 bytes has 15 first tries, each with 24 bits of its source's hash and its time as
//! eight bits of 50 ms, and then the place of the next one, which replaces the oldest. At a million
//! first tries a second, 32 MiB recognise a retry after three seconds with 99.86 %.
//!
//! Eight bits of time repeat after 12.8 s. So a line also says when it was last used: whatever was
//! too old for a retry then is gone, and the age of all else is exact.
//!
//! CPUs that use a line at the same time may lose one of two first tries. Nothing worse happens, so
//! a line has no lock.

use super::Settings;

/// The number of first tries in a line.
pub const FIRST_TRIES: usize = COUNT as usize;

const COUNT: u32 = 15;

const UNIT_NS: u64 = 50_000_000;

/// In place of an age.
const NOT_FOUND: u64 = u64::MAX;

/// The units by which the clock of another CPU may be ahead.
const AHEAD: u32 = 8;

/// The last word of a line: 4 bits for the place of the next first try, 28 bits for when the line
/// was last used, which repeat after five months.
const CURSOR: usize = FIRST_TRIES;

const PLACE_BITS: u32 = 4;
const PLACE: u32 = (1 << PLACE_BITS) - 1;
const USED: u32 = u32::MAX >> PLACE_BITS;

/// A line of [`FIRST_TRIES`] and a cursor in memory that all CPUs share. `index` must be at most
/// [`FIRST_TRIES`].
pub trait FirstTries {
    /// Returns the word at an index.
    fn get(&self, index: usize) -> u32;
    /// Sets the word at an index.
    fn set(&self, index: usize, word: u32);

    /// Has the CPU fetch the line, which is soon looked at.
    #[inline(always)]
    fn fetch(&self) {
        self.get(CURSOR);
    }
}

/// Returns the line of a source's first try in a memory of `lines` lines, a power of two, by the
/// source's hash.
#[must_use]
#[inline(always)]
pub(crate) const fn line_of(hash: u64, lines: u32) -> u32 {
    (hash >> 32) as u32 & lines.wrapping_sub(1)
}

/// Notes that a source of that hash was refused as unknown; returns whether it had been refused
/// before, and this is its retry.
///
/// A first try stays with its time when the source comes again too early. A retry is no first try.
#[inline(always)]
pub(crate) fn is_retry<F: FirstTries>(
    line: &F,
    hash: u64,
    settings: &Settings,
    now_ns: u64,
) -> bool {
    let now = ((now_ns / UNIT_NS) & 0xffff_ffff) as u32 & USED;
    let cursor = line.get(CURSOR);
    let used = cursor >> PLACE_BITS;
    let unused = now.wrapping_sub(used) & USED;
    let unused = if unused > USED - AHEAD { 0 } else { unused };
    let tag = tag(hash);
    // One number, as the kernel's verifier walks the rest once for each set of flags.
    let mut age_ns = NOT_FOUND;
    let mut index = 0;
    while index < FIRST_TRIES {
        let entry = line.get(index);
        let units = used.wrapping_sub(entry) & 0xff;
        let units = if units > 0xff - AHEAD { 0 } else { units };
        let this_age_ns = u64::from(units + unused) * UNIT_NS;
        if this_age_ns > settings.retry_within_ns {
            line.set(index, 0);
        } else if entry >> 8 == tag {
            age_ns = this_age_ns;
        }
        index += 1;
    }
    let mut place = cursor & PLACE;
    if age_ns == NOT_FOUND {
        // Not a remainder, by which the kernel's verifier would lose the bounds.
        place = if place < COUNT { place } else { 0 };
        line.set(place as usize, tag << 8 | now & 0xff);
        place += 1;
    }
    let cursor_now = used.wrapping_add(unused) << PLACE_BITS | place;
    if cursor_now != cursor {
        line.set(CURSOR, cursor_now);
    }
    age_ns != NOT_FOUND && age_ns >= settings.retry_after_ns
}

/// Returns the bits of the hash that a first try keeps: never 0, and others than those of its line.
#[inline(always)]
const fn tag(hash: u64) -> u32 {
    let tag = (hash >> 8 & 0xff_ffff) as u32;
    if tag == 0 { 1 } else { tag }
}

#[cfg(test)]
mod tests;
