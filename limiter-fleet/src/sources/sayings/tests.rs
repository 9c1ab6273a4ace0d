use super::*;
use crate::sources::SourceMap;

const NOW: u64 = 1_700_000_000_000;
const NOW_S: u64 = NOW / 1_000;
const MARGIN_S: u64 = 60;

fn word(last: u8, until_s: u64) -> Word {
    Word {
        source: Source::V4([192, 0, 2, last]),
        since_s: NOW_S - 100,
        until_s,
        is_fresh: false,
    }
}

fn sayings() -> Sayings {
    Sayings::new("a".try_into().unwrap(), 64)
}

fn sent_news(sayings: &mut Sayings) -> Vec<Word> {
    let Some(letter) = sayings.news(NOW) else {
        return Vec::new();
    };
    sayings.sent(&letter, true);
    letter.words
}

#[test]
fn only_what_is_new_is_said() {
    let mut sayings = sayings();
    let said = word(1, NOW_S + 900);
    assert!(sayings.say(said, MARGIN_S, NOW));
    assert_eq!(sent_news(&mut sayings), [said]);
    let same = [
        said,
        word(1, NOW_S + 900 + MARGIN_S - 1),
        word(1, NOW_S + 897),
        Word {
            since_s: said.since_s + 3,
            ..said
        },
    ];
    for same in same {
        assert!(sayings.say(same, MARGIN_S, NOW));
        assert_eq!(sent_news(&mut sayings), [], "{same:?}");
    }
    let news = [
        word(1, NOW_S + 900 + MARGIN_S),
        word(1, NOW_S + 300),
        Word {
            is_fresh: true,
            ..word(1, NOW_S + 300)
        },
        Word {
            since_s: NOW_S,
            ..word(1, NOW_S + 300)
        },
    ];
    for new in news {
        assert!(sayings.say(new, MARGIN_S, NOW));
        assert_eq!(sent_news(&mut sayings), [new]);
    }
    assert_eq!(sayings.len(), 1);
    // No word about this host itself, and none without an end.
    let own = Word {
        source: Source::V4([127, 0, 0, 1]),
        ..said
    };
    assert!(sayings.say(own, MARGIN_S, NOW));
    assert_eq!(sayings.len(), 1);
    sayings.say(word(2, u64::MAX), MARGIN_S, NOW);
    let said = sent_news(&mut sayings);
    assert_eq!(said[0].check(64, 64, NOW), Ok(()));
}

#[test]
fn what_is_taken_back_is_news_and_is_not_sent_twice() {
    let mut sayings = sayings();
    for last in 1..=3 {
        sayings.say(word(last, NOW_S + 900), MARGIN_S, NOW);
    }
    assert_eq!(sent_news(&mut sayings).len(), 3);
    sayings.keep(NOW, |word| word.source != Source::V4([192, 0, 2, 2]));
    assert_eq!((sayings.len(), sayings.unsent()), (2, 1));
    let letter = sayings.news(NOW).unwrap();
    assert_eq!(letter.words[0].until_s, 0);
    // It did not arrive.
    sayings.sent(&letter, false);
    let again = sayings.news(NOW).unwrap();
    assert!(again.ms > letter.ms && again.words == letter.words);
    sayings.sent(&again, true);
    assert_eq!(sayings.news(NOW), None);
}

#[test]
fn slots_are_written_when_they_change_and_each_day() {
    let mut sayings = sayings();
    sayings.say(word(1, NOW_S + 90_000_000), MARGIN_S, NOW);
    sent_news(&mut sayings);
    assert_eq!(sayings.due(9, NOW + WAIT_MS - 1), []);
    let letters = sayings.due(9, NOW + WAIT_MS);
    assert_eq!(letters.len(), 1);
    let slot = Source::V4([192, 0, 2, 1]).slot();
    assert_eq!(letters[0].part, Part::Slot(slot));
    sayings.sent(&letters[0], false);
    assert_eq!(sayings.due(9, NOW + 2 * WAIT_MS).len(), 1);
    let letters = sayings.due(9, NOW + 2 * WAIT_MS);
    sayings.sent(&letters[0], true);
    let written = letters[0].ms;
    assert_eq!(sayings.due(9, written + AGAIN_MS - 1), []);
    assert_eq!(sayings.due(9, written + AGAIN_MS).len(), 1);
    sayings.write_all_again(NOW + 3 * WAIT_MS);
    assert_eq!(sayings.due(9, NOW + 4 * WAIT_MS).len(), 1);
}

/// The store gets lost slots again, and the other nodes get the news.
#[test]
fn a_store_that_lacks_something_gets_it_again() {
    let mut sayings = sayings();
    sayings.say(word(1, NOW_S + 900), MARGIN_S, NOW);
    sent_news(&mut sayings);
    let letter = sayings.due(9, NOW + WAIT_MS).remove(0);
    sayings.sent(&letter, true);
    let slot = Source::V4([192, 0, 2, 1]).slot();
    sayings.compare(&HashMap::from([(slot, letter.ms)]), NOW);
    assert_eq!(
        (sayings.unsent(), sayings.due(9, NOW + 9_999).len()),
        (0, 0)
    );
    for there in [HashMap::new(), HashMap::from([(slot, letter.ms - 1)])] {
        sayings.compare(&there, NOW);
        assert_eq!(sayings.unsent(), 1);
        assert_eq!(sayings.due(9, NOW + WAIT_MS).len(), 1);
        sent_news(&mut sayings);
    }
}

/// A restarted node continues with the words of its earlier start.
#[test]
fn a_node_that_starts_goes_on() {
    let mut before = sayings();
    before.say(word(1, NOW_S + 900), MARGIN_S, NOW);
    let letter = before.due(9, NOW + WAIT_MS).remove(0);
    let mut sayings = sayings();
    sayings.resume(letter.clone(), NOW);
    assert_eq!((sayings.len(), sayings.unsent()), (1, 0));
    sayings.say(word(1, NOW_S + 900), MARGIN_S, NOW);
    assert_eq!(sayings.unsent(), 0);
    // The node takes back a source that is no longer proven, in a letter later than all before.
    sayings.keep(NOW, |_| false);
    let news = sayings.news(NOW - 50_000).unwrap();
    assert!(news.ms > letter.ms);
    // The other nodes accept it.
    let mut map = SourceMap::new("b".try_into().unwrap(), 64);
    map.hear(letter, NOW + WAIT_MS).unwrap();
    assert_eq!(map.len(), 1);
    map.hear(news, NOW + WAIT_MS).unwrap();
    assert!(map.is_empty());
}

#[test]
fn there_is_room_for_so_many() {
    let mut sayings = sayings();
    let of = |number: usize| Word {
        source: Source::V4((0x0a00_0000 + u32::try_from(number).unwrap()).to_be_bytes()),
        ..word(0, NOW_S + 900)
    };
    for number in 0..MOST_SAID {
        assert!(sayings.say(of(number), MARGIN_S, NOW), "{number}");
    }
    assert!(!sayings.say(of(MOST_SAID), MARGIN_S, NOW));
    let mut said = 0;
    while let Some(letter) = sayings.news(NOW) {
        assert!(letter.words.len() <= MOST_NEWS);
        said += letter.words.len();
    }
    assert_eq!(said, MOST_SAID);
    let slots = sayings.due(SLOTS, NOW + WAIT_MS);
    assert_eq!(slots.len(), SLOTS);
    assert!(
        slots
            .iter()
            .all(|letter| letter.words.len() <= MOST_OF_SLOT)
    );
}
