extern crate std;

use core::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::{collections::BTreeSet, iter, thread, vec::Vec};

use super::*;
use crate::{
    connection::{
        CountId,
        count::{self, CountTable, LINES, MOST_OPEN},
        line::{SLOTS, SlotMatches, Slots, word_at},
    },
    table::HashKey,
};

const KEY: HashKey = HashKey {
    first: 11,
    second: 12,
};

/// A table of words that threads share.
struct Words(Vec<AtomicU64>);

struct Line<'w>(&'w [AtomicU64]);

impl Slots for Line<'_> {
    fn get(&self, slot: usize) -> u64 {
        self.0[slot].load(SeqCst)
    }
}

impl Words {
    fn new(lines: u32) -> Self {
        let words = iter::repeat_with(AtomicU64::default);
        Self(words.take(lines as usize * SLOTS).collect())
    }

    fn line(&self, line: u32) -> Line<'_> {
        let first = word_at(line, 0) as usize;
        Line(&self.0[first..first + SLOTS])
    }

    fn get(&self, at: u32) -> u64 {
        self.0[at as usize].load(SeqCst)
    }

    fn swap(&self, at: u32, seen: u64, wanted: u64) -> bool {
        let word = &self.0[at as usize];
        word.compare_exchange(seen, wanted, SeqCst, SeqCst).is_ok()
    }

    fn used(&self) -> usize {
        self.0.iter().filter(|word| word.load(SeqCst) != 0).count()
    }
}

struct Tables {
    entries: Words,
    counts: Words,
}

struct TestEntries<'t>(&'t Words);

struct TestCounts<'t>(&'t Words);

impl EntryTable for TestEntries<'_> {
    fn search(&self, line: u32, sought: u64) -> SlotMatches {
        search(&self.0.line(line), sought)
    }

    fn get(&self, at: u32) -> u64 {
        self.0.get(at)
    }

    fn compare_and_swap(&self, at: u32, seen: u64, wanted: u64) -> bool {
        self.0.swap(at, seen, wanted)
    }
}

impl CountTable for TestCounts<'_> {
    fn search(&self, line: u32, count_id: CountId) -> SlotMatches {
        count::search(&self.0.line(line), count_id)
    }

    fn get(&self, at: u32) -> u64 {
        self.0.get(at)
    }

    fn compare_and_swap(&self, at: u32, seen: u64, wanted: u64) -> bool {
        self.0.swap(at, seen, wanted)
    }

    fn count_down(&self, at: u32) -> u64 {
        self.0.0[at as usize].fetch_sub(1, SeqCst)
    }
}

impl Tables {
    fn new() -> Self {
        Self {
            entries: Words::new(ENTRY_LINES),
            counts: Words::new(LINES),
        }
    }

    fn settle(&self, cookie: u64, limit: u32, count_id: CountId) -> bool {
        let (entries, counts) = (TestEntries(&self.entries), TestCounts(&self.counts));
        settle(&entries, &counts, counted(cookie, limit), count_id)
    }

    fn close(&self, cookie: u64, limit: u32) {
        let (entries, counts) = (TestEntries(&self.entries), TestCounts(&self.counts));
        close(&entries, &counts, counted(cookie, limit));
    }

    fn open(&self, count_id: CountId) -> u64 {
        let lines = count_id.lines().into_iter();
        lines
            .map(|line| count::open_in(&self.counts.line(line), count_id))
            .sum()
    }

    fn cookies(&self) -> Vec<u64> {
        let words = (0..).zip(&self.entries.0);
        words
            .filter_map(|(at, word)| cookie_of(&KEY, at, word.load(SeqCst)))
            .collect()
    }

    fn assert_empty(&self) {
        assert_eq!((self.entries.used(), self.counts.used()), (0, 0));
    }
}

fn counted(cookie: u64, limit: u32) -> CountedConnection {
    CountedConnection {
        name: Name::new(&KEY, cookie),
        limit,
    }
}

fn count_id(key: u64) -> CountId {
    CountId(KEY.word_hash(key) | CountId::LOWEST_OF_TAG)
}

/// Cookies can be recovered from their entries, including cookies that the kernel counts down.
#[test]
fn an_entry_says_whose_it_is() {
    let tables = Tables::new();
    let cookies = [1, 2, 4096, (1 << 55) - 1, u64::MAX, u64::MAX - 7];
    for (limit, cookie) in (0..).zip(cookies) {
        assert!(tables.settle(cookie, limit, count_id(cookie)));
        assert!(tables.settle(cookie, 7, count_id(7)));
        assert_eq!(tables.open(count_id(cookie)), 1);
    }
    assert_eq!(tables.open(count_id(7)), 6);
    let found: BTreeSet<u64> = tables.cookies().into_iter().collect();
    assert_eq!(found, cookies.into());
    assert_eq!(tables.cookies().len(), 12);
    for (limit, cookie) in (0..).zip(cookies) {
        tables.close(cookie, limit);
        tables.close(cookie, 7);
        // A second end has no effect.
        tables.close(cookie, 7);
    }
    tables.assert_empty();
}

#[test]
fn a_connection_is_counted_once_and_where_the_last_policy_says() {
    let tables = Tables::new();
    for key in [5, 5, 6, 6, 5] {
        assert!(tables.settle(77, 3, count_id(key)));
        let others = if key == 5 { 6 } else { 5 };
        assert_eq!(
            (tables.open(count_id(key)), tables.open(count_id(others))),
            (1, 0)
        );
    }
    assert!(tables.settle(77, 3, CountId(0)));
    tables.assert_empty();
}

/// The promised maximum: a million connections, each of a key of its own.
#[test]
fn a_million_connections_have_room() {
    const COUNT: u64 = 1_000_000;
    let tables = Tables::new();
    for cookie in 1..=COUNT {
        assert!(tables.settle(cookie, 0, count_id(cookie)), "{cookie}");
    }
    // And by a second limit on all.
    for cookie in 1..=COUNT {
        assert!(tables.settle(cookie, 1, count_id(0)), "{cookie}");
    }
    let mut some = (1..=COUNT).step_by(16);
    assert!(some.all(|cookie| tables.open(count_id(cookie)) == 1));
    assert_eq!(tables.open(count_id(0)), COUNT);
    let mut cookies = tables.cookies();
    cookies.sort_unstable();
    cookies.dedup();
    assert!(cookies.into_iter().eq(1..=COUNT));
    for cookie in 1..=COUNT {
        tables.close(cookie, 0);
        tables.close(cookie, 1);
    }
    tables.assert_empty();
}

/// A connection without room is counted nowhere, and leaves nothing behind.
#[test]
fn nothing_is_left_of_what_had_no_room() {
    let tables = Tables::new();
    let most = u64::from(LINES) * SLOTS as u64 + 100_000;
    let mut uncounted = 0;
    for cookie in 1..=most {
        let is_counted = tables.settle(cookie, 0, count_id(cookie));
        if cookie.is_multiple_of(16) {
            assert_eq!(tables.open(count_id(cookie)), u64::from(is_counted));
        }
        uncounted += u64::from(!is_counted);
    }
    let words = tables.counts.used() as u64;
    assert_eq!(uncounted, most - words);
    assert_eq!(tables.entries.used() as u64, words);
    assert!(words > u64::from(LINES) * 7, "{words}");
    // A count id with many open connections has room all the same.
    assert!(tables.settle(most + 1, 0, count_id(1)));
    for cookie in 1..=most + 1 {
        tables.close(cookie, 0);
    }
    tables.assert_empty();
}

#[test]
fn a_full_word_is_followed_by_another() {
    let tables = Tables::new();
    let at = word_at(count_id(7).lines()[0], 0);
    tables.counts.0[at as usize].store(count_id(7).tag() + MOST_OPEN, SeqCst);
    assert!(tables.settle(1, 0, count_id(7)));
    assert_eq!(tables.open(count_id(7)), MOST_OPEN + 1);
    tables.close(1, 0);
    assert_eq!(tables.open(count_id(7)), MOST_OPEN);
}

/// Threads open, recount under another policy, and close the same connections at the same time, as the
/// network stack and userspace do: each connection is counted once while it is open, where a policy said, and
/// then nowhere.
#[test]
fn threads_count_each_connection_once() {
    const ROUNDS: u64 = 10_000;
    /// So few that all threads meet in the same lines.
    const KEYS: u64 = 3;
    let tables = Tables::new();
    let barrier = std::sync::Barrier::new(3);
    let meet = || {
        barrier.wait();
    };
    let open = || -> u64 { (0..KEYS).map(|key| tables.open(count_id(key))).sum() };
    let is_right = |cookie: u64| {
        assert_eq!(open(), 1, "cookie {cookie}");
        // This look-up is slow.
        if cookie.is_multiple_of(1_000) {
            assert_eq!(tables.entries.used(), 1, "cookie {cookie}");
        }
    };
    thread::scope(|scope| {
        for thread in 0..3_u64 {
            let (tables, meet, is_right) = (&tables, &meet, &is_right);
            scope.spawn(move || {
                for cookie in 1..=ROUNDS {
                    meet();
                    // Two threads name the same key, a third another.
                    assert!(tables.settle(cookie, 0, count_id(thread / 2)));
                    meet();
                    if thread == 0 {
                        is_right(cookie);
                    }
                    meet();
                    if thread == 1 {
                        // Userspace saw it open, and comes late: it is counted again, or still.
                        assert!(tables.settle(cookie, 0, count_id(2)));
                    } else {
                        tables.close(cookie, 0);
                    }
                    meet();
                    if thread == 2 {
                        tables.close(cookie, 0);
                    }
                }
            });
        }
    });
    assert_eq!(open(), 0);
    tables.assert_empty();
}
