//! First tries: the sources that were refused as unknown a short time ago.
//!
//! A line of 64 bytes has 15 first tries: each is 24 bits of its source's hash and eight bits of time, in steps of 50
//! ms. The last word is the cursor, the position of the next first try, which replaces the oldest. At a million first
//! tries a second, 32 MiB recognise 99.86 % of the retries that come after three seconds.
//!
//! Eight bits of time repeat after 12.8 s. So a line also keeps the step of its last use, and each use clears the
//! entries too old for a retry. The age of the remaining entries is then exact.
//!
//! CPUs that use a line at the same time may lose one of two first tries. No other harm is possible, so a line has no
//! lock.

use super::Settings;

/// The number of first tries in a line.
pub const FIRST_TRIES: usize = COUNT as usize;

const COUNT: u32 = 15;

const STEP_NS: u64 = 50_000_000;

/// In place of an age: no entry matches.
const NOT_FOUND: u64 = u64::MAX;

/// The steps by which the clock of another CPU may be ahead.
const AHEAD: u32 = 8;

/// The last word of a line: 4 bits for the position of the next first try, and 28 bits for the step of the line's last
/// use, which repeat after five months.
const CURSOR: usize = FIRST_TRIES;

const POSITION_BITS: u32 = 4;
const POSITION: u32 = (1 << POSITION_BITS) - 1;
const USED: u32 = u32::MAX >> POSITION_BITS;

/// A line of [`FIRST_TRIES`] and a cursor in memory that all CPUs share. `index` must be at most
/// [`FIRST_TRIES`].
pub trait FirstTries {
    /// Returns the word at an index.
    fn get(&self, index: usize) -> u32;
    /// Sets the word at an index.
    fn set(&self, index: usize, word: u32);

    /// Prefetches the line into the CPU's cache.
    #[inline(always)]
    fn fetch(&self) {
        self.get(CURSOR);
    }
}

/// The index of the line for a source's first try, by the source's hash. `lines` must be a power of two.
#[must_use]
#[inline(always)]
pub const fn line_of(hash: u64, lines: u32) -> u32 {
    (hash >> 32) as u32 & lines.wrapping_sub(1)
}

/// Records that a source with this hash was refused as unknown; returns whether this is its retry.
///
/// If the source comes back too early, its first try keeps its time. A retry does not count as a first try.
#[inline(always)]
pub(crate) fn is_retry<F: FirstTries>(
    line: &F,
    hash: u64,
    settings: &Settings,
    now_ns: u64,
) -> bool {
    let age_ns = age(line, hash, settings.retry_within_ns, now_ns);
    age_ns != NOT_FOUND && age_ns >= settings.retry_after_ns
}

/// The time since the first try of this hash, in nanoseconds, to 50 ms, if it is at most `within_ns`, which must be at
/// most [`Settings::LONGEST_RETRY_NS`]. Otherwise returns `None` and records a first try.
#[inline(always)]
pub fn age_of_first_try<F: FirstTries>(
    line: &F,
    hash: u64,
    within_ns: u64,
    now_ns: u64,
) -> Option<u64> {
    let age_ns = age(line, hash, within_ns, now_ns);
    (age_ns != NOT_FOUND).then_some(age_ns)
}

/// [`age_of_first_try`] as one number; [`NOT_FOUND`] for a first try.
#[inline(always)]
fn age<F: FirstTries>(line: &F, hash: u64, within_ns: u64, now_ns: u64) -> u64 {
    let now = ((now_ns / STEP_NS) & 0xffff_ffff) as u32 & USED;
    let cursor = line.get(CURSOR);
    let used = cursor >> POSITION_BITS;
    let unused = now.wrapping_sub(used) & USED;
    let unused = if unused > USED - AHEAD { 0 } else { unused };
    let tag = tag(hash);
    // One number, because the kernel's verifier walks the rest once for each set of flags.
    let mut age_ns = NOT_FOUND;
    let mut index = 0;
    while index < FIRST_TRIES {
        let entry = line.get(index);
        let steps = used.wrapping_sub(entry) & 0xff;
        let steps = if steps > 0xff - AHEAD { 0 } else { steps };
        let this_age_ns = u64::from(steps + unused) * STEP_NS;
        if this_age_ns > within_ns {
            line.set(index, 0);
        } else if entry >> 8 == tag {
            age_ns = this_age_ns;
        }
        index += 1;
    }
    let mut position = cursor & POSITION;
    if age_ns == NOT_FOUND {
        // Not a remainder: the kernel's verifier does not know its bounds.
        position = if position < COUNT { position } else { 0 };
        line.set(position as usize, tag << 8 | now & 0xff);
        position += 1;
    }
    let cursor_now = used.wrapping_add(unused) << POSITION_BITS | position;
    if cursor_now != cursor {
        line.set(CURSOR, cursor_now);
    }
    age_ns
}

/// The bits of the hash in a first try: never 0, and distinct from the bits that choose the line.
#[inline(always)]
const fn tag(hash: u64) -> u32 {
    let tag = (hash >> 8 & 0xff_ffff) as u32;
    if tag == 0 { 1 } else { tag }
}

#[cfg(test)]
mod tests;
