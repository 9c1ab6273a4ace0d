use proptest::{collection::vec, prelude::*};

use super::*;

const NOW: u64 = 1_700_000_000_000;
const NOW_S: u64 = NOW / 1_000;

fn source(last: u8) -> Source {
    Source::V4([192, 0, 2, last])
}

fn word(last: u8, until_s: u64) -> Word {
    Word {
        source: source(last),
        since_s: NOW_S - 100,
        until_s,
        is_fresh: false,
    }
}

fn letter(node: &str, ms: u64, part: Part, words: &[Word]) -> SourceLetter {
    SourceLetter {
        node: node.try_into().unwrap(),
        ms,
        ipv6_prefix: 64,
        part,
        words: words.to_vec(),
    }
}

fn map() -> SourceMap {
    SourceMap::new("a".try_into().unwrap(), 64)
}

/// Takes news; returns the number of changed sources.
fn news(map: &mut SourceMap, node: &str, ms: u64, words: &[Word]) -> usize {
    let changes = map.hear(letter(node, ms, Part::News, words), NOW).unwrap();
    assert_eq!(changes.refused, []);
    changes.sources.len()
}

fn slot(map: &mut SourceMap, node: &str, ms: u64, words: &[Word]) -> usize {
    let part = Part::Slot(source(1).slot());
    let changes = map.hear(letter(node, ms, part, words), NOW).unwrap();
    changes.sources.len()
}

#[test]
fn the_later_letter_counts_and_nothing_repeated() {
    let mut map = map();
    let later = word(1, NOW_S + 900);
    assert_eq!(news(&mut map, "b", NOW - 9, &[word(1, NOW_S + 500)]), 1);
    assert_eq!(news(&mut map, "b", NOW - 8, &[later]), 1);
    for ms in [NOW - 9, NOW - 8] {
        assert_eq!(news(&mut map, "b", ms, &[word(1, NOW_S + 5_000)]), 0);
    }
    assert_eq!(map.word(source(1), NOW_S), Some(later));
    // A word taken back stays so.
    assert_eq!(news(&mut map, "b", NOW - 7, &[word(1, 0)]), 1);
    assert_eq!(news(&mut map, "b", NOW - 8, &[later]), 0);
    assert_eq!(slot(&mut map, "b", NOW - 6, &[]), 0);
    assert_eq!(slot(&mut map, "b", NOW - 8, &[later]), 0);
    assert_eq!(map.word(source(1), NOW_S), None);
    assert!(map.is_empty());
}

#[test]
fn a_slot_is_all_that_a_node_says_of_it() {
    let mut map = map();
    let words = [word(1, NOW_S + 500)];
    assert_eq!(slot(&mut map, "b", NOW - 9, &words), 1);
    assert_eq!(slot(&mut map, "b", NOW - 9, &[]), 0, "it is repeated");
    assert_eq!(slot(&mut map, "b", NOW - 8, &words), 0, "it says the same");
    // Newer news survive the slot.
    let late = word(1, NOW_S + 600);
    assert_eq!(news(&mut map, "b", NOW - 5, &[late]), 1);
    assert_eq!(slot(&mut map, "b", NOW - 6, &[]), 0);
    assert_eq!(map.word(source(1), NOW_S), Some(late));
    // News older than the slot have no effect.
    assert_eq!(slot(&mut map, "b", NOW - 3, &[]), 1);
    assert_eq!(news(&mut map, "b", NOW - 4, &[late]), 0);
    assert!(map.is_empty());
    // The word belongs to another slot.
    let other = (2..=255).find(|last| source(*last).slot() != source(1).slot());
    let part = Part::Slot(source(1).slot());
    let wrong = letter("b", NOW, part, &[word(other.unwrap(), NOW_S + 5)]);
    let changes = map.hear(wrong, NOW).unwrap();
    assert_eq!(changes.refused, [NotHeard::Wrong]);
    assert!(map.is_empty() && changes.sources.is_empty());
}

#[test]
fn a_node_speaks_for_itself_alone() {
    let mut map = map();
    news(&mut map, "b", NOW - 9, &[word(1, NOW_S + 500)]);
    news(&mut map, "c", NOW - 8, &[word(1, NOW_S + 300)]);
    assert_eq!(news(&mut map, "b", NOW - 7, &[word(1, 0)]), 1);
    assert_eq!(
        map.word(source(1), NOW_S),
        Some(word(1, NOW_S + 300)),
        "c says so, too"
    );
    // A node ignores its own letters.
    let own = letter("a", NOW, Part::News, &[word(2, NOW_S + 500)]);
    assert_eq!(map.hear(own, NOW), Ok(Changes::default()));
    assert_eq!(map.word(source(2), NOW_S), None);
}

#[test]
fn words_end() {
    let mut map = map();
    news(
        &mut map,
        "b",
        NOW,
        &[word(1, NOW_S + 300), word(2, NOW_S + 900)],
    );
    assert!(map.word(source(1), NOW_S + 299).is_some());
    assert_eq!(map.word(source(1), NOW_S + 300), None);
    assert_eq!(map.forget(NOW + 179_000), []);
    assert_eq!(map.forget(NOW + 180_000), [source(1)], "it is over soon");
    assert_eq!(map.len(), 2);
    assert_eq!(map.forget(NOW + 300_000), [source(1)]);
    assert_eq!(map.len(), 1);
    assert_eq!(map.sources().collect::<Vec<_>>(), [source(2)]);
    map.forget(NOW + 900_000);
    assert!(map.is_empty() && !map.speakers.is_empty());
    map.forget(NOW + 900_000 + SLOT_MS);
    assert!(map.speakers.is_empty());
}

#[test]
fn the_best_word_counts() {
    let mut map = map();
    let fresh = Word {
        is_fresh: true,
        since_s: 0,
        ..word(1, NOW_S + 9_000)
    };
    let old = Word {
        since_s: 1,
        ..word(1, NOW_S + 500)
    };
    news(&mut map, "b", NOW, &[fresh]);
    assert_eq!(map.word(source(1), NOW_S), Some(fresh));
    news(&mut map, "c", NOW, &[word(1, NOW_S + 900)]);
    assert_eq!(map.word(source(1), NOW_S), Some(word(1, NOW_S + 900)));
    news(&mut map, "d", NOW, &[old]);
    assert_eq!(map.word(source(1), NOW_S), Some(old));
    // The other word ends soon.
    assert_eq!(map.word(source(1), NOW_S + 400), Some(word(1, NOW_S + 900)));
}

#[test]
fn letters_that_are_not_believed() {
    let mut map = map();
    let words = [word(1, NOW_S + 500)];
    let mut hear = |ms, part, now| map.hear(letter("b", ms, part, &words), now);
    let of_slot = Part::Slot(source(1).slot());
    for part in [Part::News, of_slot] {
        assert_eq!(hear(NOW + 60_001, part, NOW), Err(NotHeard::Ahead));
    }
    assert_eq!(hear(NOW, Part::News, NOW + NEWS_MS + 1), Err(NotHeard::Old));
    assert_eq!(hear(NOW, of_slot, NOW + SLOT_MS + 1), Err(NotHeard::Old));
    assert!(hear(NOW + 60_000, of_slot, NOW).is_ok());
    let wrong = [
        Word {
            source: Source::V4([127, 0, 0, 1]),
            ..words[0]
        },
        Word {
            since_s: NOW_S + 61,
            ..word(2, NOW_S + 500)
        },
        word(3, u64::MAX),
        word(4, NOW_S + 500),
    ];
    let changes = map.hear(letter("c", NOW, Part::News, &wrong), NOW).unwrap();
    assert_eq!(changes.sources, [source(4)]);
    assert_eq!(changes.refused, [NotHeard::Wrong, NotHeard::Ahead]);
}

#[test]
fn there_is_room_for_so_many() {
    let mut map = map();
    let mut number = 0_u32;
    let mut words = |count: usize| {
        let words = (0..count).map(|_| {
            number += 1;
            Word {
                source: Source::V4((0x0a00_0000 + number).to_be_bytes()),
                ..word(0, NOW_S + 500)
            }
        });
        words.collect::<Vec<_>>()
    };
    for node in ["b", "c", "d", "e", "f"] {
        assert_eq!(news(&mut map, node, NOW, &words(MOST_SAID)), MOST_SAID);
        let more = map.hear(letter(node, NOW + 1, Part::News, &words(1)), NOW);
        assert_eq!(more.unwrap().refused, [NotHeard::Full]);
    }
    assert_eq!(map.len(), MOST_HEARD);
    let more = map.hear(letter("g", NOW, Part::News, &words(1)), NOW);
    assert_eq!(more.unwrap().refused, [NotHeard::Full]);
}

proptest! {
    /// Repeated and late letters never activate a word that its node has not sent, or has taken back since;
    /// and the count stays right.
    #[test]
    fn nothing_repeated_lengthens_anything(
        letters in vec((0_u8..2, 1_u64..6, any::<bool>(), vec((1_u8..4, 0_u64..3), 0..3)), 1..16),
    ) {
        let mut map = map();
        let mut longest = HashMap::<(u8, u8), u64>::new();
        for (node, order, is_slot, words) in letters {
            let words: Vec<_> = words.iter().map(|(last, until)| {
                word(*last, if *until == 0 { 0 } else { NOW_S + until * 100 })
            }).collect();
            for word in &words {
                let Source::V4([.., last]) = word.source else { unreachable!() };
                let most = longest.entry((node, last)).or_default();
                *most = (*most).max(word.until_s);
            }
            let name = char::from(b'b' + node).to_string();
            let part = if is_slot { Part::Slot(source(1).slot()) } else { Part::News };
            let _ = map.hear(letter(&name, NOW + order, part, &words), NOW);
            let held = map.sources().count();
            prop_assert_eq!(map.len(), held);
        }
        for last in 1..4 {
            if let Some(found) = map.word(source(last), NOW_S) {
                let most = longest.iter().filter(|((_, of), _)| *of == last).map(|(_, until)| *until);
                prop_assert!(Some(found.until_s) <= most.max());
            }
        }
    }
}
