use core::{array, cell::Cell};

use super::*;
use crate::table::HashKey;

extern crate std;

use std::vec::Vec;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

const SETTINGS: Settings = Settings {
    retry_after_ns: 200 * MS,
    retry_within_ns: 10 * SECOND,
    ..Settings::NONE
};

const KEY: HashKey = HashKey {
    first: 0x0706_0504_0302_0100,
    second: 0x0f0e_0d0c_0b0a_0908,
};

/// A line for one thread.
struct OneLine([Cell<u32>; FIRST_TRIES + 1]);

impl Default for OneLine {
    fn default() -> Self {
        Self(array::from_fn(|_| Cell::default()))
    }
}

impl FirstTries for &OneLine {
    fn get(&self, index: usize) -> u32 {
        self.0[index].get()
    }

    fn set(&self, index: usize, word: u32) {
        self.0[index].set(word);
    }
}

impl OneLine {
    fn is_retry(&self, source: u64, now_ns: u64) -> bool {
        is_retry(&self, KEY.word_hash(source), &SETTINGS, now_ns)
    }
}

#[test]
fn a_retry_comes_in_time() {
    // The stored times repeat after 12.8 s, and the tries begin at each step of that period.
    for start in (0..30 * SECOND).step_by(50_000_000) {
        for (after_ms, expected) in [
            (0, false),
            (100, false),
            (149, false),
            (200, true),
            (1_000, true),
            (10_000, true),
            (10_050, false),
            (12_350, false),
            (13_000, false),
            (20_000, false),
            (100_000, false),
        ] {
            let line = OneLine::default();
            assert!(!line.is_retry(1, start));
            let again = start + after_ms * MS;
            assert_eq!(line.is_retry(1, again), expected, "{start} {after_ms}");
            assert!(!line.is_retry(2, again), "another source");
        }
    }
}

#[test]
fn a_first_try_keeps_its_time_and_a_late_one_is_a_first_try() {
    let line = OneLine::default();
    assert!(!line.is_retry(1, 0));
    assert!(!line.is_retry(1, 100 * MS));
    assert!(line.is_retry(1, 250 * MS), "a burst has not renewed it");
    assert!(line.is_retry(1, 9 * SECOND), "nor has its retry");
    assert!(!line.is_retry(1, 11 * SECOND));
    assert!(line.is_retry(1, 12 * SECOND));
}

/// Other sources use the line meanwhile, often or seldom.
#[test]
fn ages_are_exact_however_a_line_is_used() {
    for step_ms in [50, 700, 2_450, 3_000, 7_000, 12_700, 13_000] {
        let line = OneLine::default();
        assert!(!line.is_retry(1, SECOND));
        let uses = (1..10).map(|use_| SECOND + use_ * step_ms * MS);
        for (other, now) in (2..).zip(uses) {
            assert!(!line.is_retry(other, now));
        }
        let after = 9 * step_ms * MS;
        let expected = (200 * MS..=10 * SECOND).contains(&after);
        assert_eq!(line.is_retry(1, SECOND + after), expected, "{step_ms}");
    }
}

#[test]
fn a_clock_ahead_makes_no_retry() {
    for start in (SECOND..30 * SECOND).step_by(50_000_000) {
        let line = OneLine::default();
        assert!(!line.is_retry(1, start));
        assert!(!line.is_retry(1, start - 50 * MS));
        assert!(line.is_retry(1, start + SECOND), "it has not been replaced");
    }
}

#[test]
fn a_clock_set_back_makes_no_retry() {
    let line = OneLine::default();
    assert!(!line.is_retry(1, 100 * SECOND));
    assert!(!line.is_retry(1, 90 * SECOND));
    assert!(!line.is_retry(2, 90 * SECOND));
    assert!(line.is_retry(1, 91 * SECOND));
    assert!(line.is_retry(2, 91 * SECOND));
}

#[test]
fn the_oldest_first_try_makes_room() {
    let line = OneLine::default();
    for source in 0..=FIRST_TRIES as u64 {
        assert!(!line.is_retry(source, source * 100 * MS));
    }
    for source in 1..=FIRST_TRIES as u64 {
        assert!(line.is_retry(source, 3 * SECOND), "{source}");
    }
    assert!(!line.is_retry(0, 3 * SECOND));
}

/// 1/64 of 32 MiB, at 1/64 of a million first tries a second.
#[test]
fn a_flood_hides_few_retries_and_makes_few_strangers_retry() {
    const LINES: u32 = (32 << 20) / 64 / 64;
    const EACH_SECOND: u64 = 1_000_000 / 64;
    const SEEN: u64 = 40 * EACH_SECOND;
    let lines: Vec<OneLine> = (0..LINES).map(|_| OneLine::default()).collect();
    let refuse = |source: u64, now: u64| {
        let hash = KEY.word_hash(source);
        is_retry(&&lines[line_of(hash, LINES) as usize], hash, &SETTINGS, now)
    };
    let at = |number: u64| number * SECOND / EACH_SECOND;
    // Each hundredth source comes again after a second, and another hundredth after three.
    let retries = |number: u64, after_seconds: u64, which: u64| {
        let first = number.checked_sub(after_seconds * EACH_SECOND)?;
        (first % 100 == which).then_some(first)
    };
    let (mut strangers, mut counts) = (0, [[0_u32; 2]; 2]);
    for number in 0..SEEN {
        strangers += u64::from(refuse(number, at(number)));
        for (index, seconds) in [1, 3].into_iter().enumerate() {
            if let Some(first) = retries(number, seconds, index as u64) {
                counts[index][0] += 1;
                counts[index][1] += u32::from(refuse(first, at(number)));
            }
        }
    }
    for [tried, recognised] in counts {
        assert!(tried > 5_000);
        assert!(recognised * 100 >= tried * 99, "{recognised} of {tried}");
    }
    assert!(strangers * 100_000 <= SEEN, "{strangers} of {SEEN}");
}
