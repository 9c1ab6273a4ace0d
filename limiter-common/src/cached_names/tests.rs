extern crate std;

use std::{iter::repeat_with, sync::atomic::Ordering::SeqCst, vec::Vec};

use super::*;

const TICK_NS: u64 = 1 << TICK_BITS;

/// How long names stay cached in these tests, in units of time.
const CACHED_FOR: u64 = 3_600;

const FEATURES: Features = Features {
    names_cached_for_ns: CACHED_FOR * TICK_NS,
    ..Features::EMPTY
};

struct Lines(Vec<NameLine>);

impl Lines {
    fn new(count: usize) -> Self {
        Self(repeat_with(NameLine::default).take(count).collect())
    }

    fn has(&self, hash: u64, at: u64) -> bool {
        is_cached(self, &FEATURES, hash, at * TICK_NS)
    }

    fn enter(&self, hash: u64, at: u64) {
        enter(self, hash, at * TICK_NS);
    }
}

impl NameLines for Lines {
    fn count(&self) -> u64 {
        self.0.len() as u64
    }

    fn line(&self, index: u32) -> Option<&NameLine> {
        self.0.get(index as usize)
    }

    fn swap(&self, word: &Word, seen: u64, new: u64) {
        let _ = word.atomic().compare_exchange(seen, new, SeqCst, SeqCst);
    }
}

/// The hash of the first line's name with this number.
const fn of_first_line(number: u64) -> u64 {
    number << TIME_BITS
}

/// A generator of hashes: `SplitMix64` (Steele, Lea and Flood, 2014).
fn hashes(mut state: u64) -> impl Iterator<Item = u64> {
    repeat_with(move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    })
}

#[test]
fn a_name_is_known_once_it_entered() {
    let lines = Lines::new(4);
    for hash in [0, 1, 3, of_first_line(2), u64::MAX] {
        assert!(!lines.has(hash, 7), "{hash:x}");
        lines.enter(hash, 7);
        assert!(lines.has(hash, 7), "{hash:x}");
    }
    // Time 0, too: an empty word matches no name.
    assert!(!Lines::new(4).has(0, 0));
    // Without a table no name is cached, and entering one does nothing.
    let none = Lines::new(0);
    none.enter(1, 1);
    assert!(!none.has(1, 1));
}

#[test]
fn a_name_is_known_for_some_time_after_it_was_asked_for() {
    let lines = Lines::new(1);
    lines.enter(1, 100);
    assert!(lines.has(1, 100 + CACHED_FOR));
    // The look-up at 3,600 has refreshed its time.
    assert!(lines.has(1, 100 + 2 * CACHED_FOR));
    assert!(!lines.has(1, 101 + 3 * CACHED_FOR));
    // A name that is entered again takes its own word, not another.
    lines.enter(1, 101 + 3 * CACHED_FOR);
    let taken = lines.0[0].0.iter().filter(|word| word.get() != 0);
    assert_eq!(taken.count(), 1);
}

#[test]
fn a_clock_that_is_behind_forgets_nothing() {
    let lines = Lines::new(1);
    lines.enter(1, 100);
    assert!(lines.has(1, 99));
    lines.enter(of_first_line(2), TIME);
    assert!(
        lines.has(of_first_line(2), TIME + 1),
        "the times begin again"
    );
}

#[test]
fn most_queries_for_a_known_name_write_nothing() {
    let lines = Lines::new(1);
    lines.enter(1, 100);
    let before = lines.0[0].0[0].get();
    assert!(lines.has(1, 99 + REFRESHED_AFTER));
    assert_eq!(lines.0[0].0[0].get(), before);
    assert!(lines.has(1, 100 + REFRESHED_AFTER));
    assert_ne!(lines.0[0].0[0].get(), before);
}

#[test]
fn the_name_that_nobody_asked_for_for_longest_gives_way() {
    let lines = Lines::new(1);
    for number in 0..8 {
        lines.enter(of_first_line(2 + number), 100 * (1 + number));
    }
    // The query for the first name makes the second the oldest.
    assert!(lines.has(of_first_line(2), 1_000));
    lines.enter(of_first_line(10), 1_001);
    let cached = (2..11).filter(|number| lines.has(of_first_line(*number), 1_001));
    assert_eq!(cached.collect::<Vec<_>>(), [2, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(
        lines.0[0].count(FEATURES.names_cached_for_ns, 1_001 * TICK_NS),
        8
    );
}

/// The probability that a Poisson variable with this mean is at least eight.
fn eight_or_more(mean: f64) -> f64 {
    let (mut term, mut below) = ((-mean).exp(), 0.0);
    for number in 0..8 {
        below += term;
        term *= mean / f64::from(number + 1);
    }
    1.0 - below
}

/// The number of lines, and of cached names. With fewer, the fullest lines would distort the result.
const LINES: u16 = 1 << 15;

/// Enters `rate` new names a second and queries each cached name every `apart` seconds; returns the share of cached
/// names that are lost by then.
fn lost(rate: u32, apart: u32) -> f64 {
    let lines = Lines::new(LINES.into());
    let cached: Vec<u64> = hashes(1).take(LINES.into()).collect();
    let mut new = hashes(2);
    let (mut lost, mut asked) = (0, 0);
    for second in 0..4 * apart {
        for hash in new.by_ref().take(rate as usize) {
            lines.enter(hash, second.into());
        }
        let first = (second % apart) as usize;
        for hash in cached.iter().skip(first).step_by(apart as usize) {
            let is_cached = lines.has(*hash, second.into());
            if !is_cached {
                lines.enter(*hash, second.into());
            }
            if second >= apart {
                asked += 1;
                lost += u32::from(!is_cached);
            }
        }
    }
    f64::from(lost) / f64::from(asked)
}

#[test]
fn a_flood_of_new_names_drives_out_known_ones_as_rarely_as_documented() {
    for (rate, apart) in [(400, 60), (400, 200), (1_600, 60), (1_600, 200)] {
        let lost = lost(rate, apart);
        // The mean number of entries in a line between two queries: other cached names, and new ones.
        let wanted = eight_or_more(1.0 + f64::from(rate * apart) / f64::from(LINES));
        std::println!("{rate} a second, {apart} s apart: {lost} are lost, {wanted} by the formula");
        assert!(
            lost <= wanted * 1.2 + 0.000_2,
            "{rate} a second, {apart} s apart: {lost} are lost, at most {wanted}"
        );
    }
}
