use super::*;
use crate::sources::SourceMap;

const NOW: u64 = 1_700_000_000_000;
const NOW_S: u64 = NOW / 1_000;
const MARGIN_S: u64 = 60;

fn entry(last: u8, until_s: u64) -> SourceEntry {
    SourceEntry {
        source: Source::V4([192, 0, 2, last]),
        since_s: NOW_S - 100,
        until_s,
        is_fresh: false,
    }
}

fn own_entries() -> OwnEntries {
    OwnEntries::new("a".try_into().unwrap(), 64)
}

fn sent_news(own_entries: &mut OwnEntries) -> Vec<SourceEntry> {
    let Some(message) = own_entries.news(NOW) else {
        return Vec::new();
    };
    own_entries.sent(&message, true);
    message.entries
}

#[test]
fn only_changes_are_sent() {
    let mut own_entries = own_entries();
    let sent = entry(1, NOW_S + 900);
    assert!(own_entries.set(sent, MARGIN_S, NOW));
    assert_eq!(sent_news(&mut own_entries), [sent]);
    let same = [
        sent,
        entry(1, NOW_S + 900 + MARGIN_S - 1),
        entry(1, NOW_S + 897),
        SourceEntry {
            since_s: sent.since_s + 3,
            ..sent
        },
    ];
    for same in same {
        assert!(own_entries.set(same, MARGIN_S, NOW));
        assert_eq!(sent_news(&mut own_entries), [], "{same:?}");
    }
    let news = [
        entry(1, NOW_S + 900 + MARGIN_S),
        entry(1, NOW_S + 300),
        SourceEntry {
            is_fresh: true,
            ..entry(1, NOW_S + 300)
        },
        SourceEntry {
            since_s: NOW_S,
            ..entry(1, NOW_S + 300)
        },
    ];
    for new in news {
        assert!(own_entries.set(new, MARGIN_S, NOW));
        assert_eq!(sent_news(&mut own_entries), [new]);
    }
    assert_eq!(own_entries.len(), 1);
    // No entry about this host itself, and none without an end.
    let own = SourceEntry {
        source: Source::V4([127, 0, 0, 1]),
        ..sent
    };
    assert!(own_entries.set(own, MARGIN_S, NOW));
    assert_eq!(own_entries.len(), 1);
    own_entries.set(entry(2, u64::MAX), MARGIN_S, NOW);
    let sent = sent_news(&mut own_entries);
    assert_eq!(sent[0].check(64, 64, NOW), Ok(()));
}

#[test]
fn what_is_taken_back_is_news_and_is_not_sent_twice() {
    let mut own_entries = own_entries();
    for last in 1..=3 {
        own_entries.set(entry(last, NOW_S + 900), MARGIN_S, NOW);
    }
    assert_eq!(sent_news(&mut own_entries).len(), 3);
    own_entries.keep(NOW, |entry| entry.source != Source::V4([192, 0, 2, 2]));
    assert_eq!((own_entries.len(), own_entries.unsent()), (2, 1));
    let message = own_entries.news(NOW).unwrap();
    assert_eq!(message.entries[0].until_s, 0);
    // It did not arrive.
    own_entries.sent(&message, false);
    let again = own_entries.news(NOW).unwrap();
    assert!(again.ms > message.ms && again.entries == message.entries);
    own_entries.sent(&again, true);
    assert_eq!(own_entries.news(NOW), None);
}

#[test]
fn slots_are_written_when_they_change_and_each_day() {
    let mut own_entries = own_entries();
    own_entries.set(entry(1, NOW_S + 90_000_000), MARGIN_S, NOW);
    sent_news(&mut own_entries);
    assert_eq!(own_entries.due(9, NOW + WAIT_MS - 1), []);
    let messages = own_entries.due(9, NOW + WAIT_MS);
    assert_eq!(messages.len(), 1);
    let slot = Source::V4([192, 0, 2, 1]).slot();
    assert_eq!(messages[0].part, Part::Slot(slot));
    own_entries.sent(&messages[0], false);
    assert_eq!(own_entries.due(9, NOW + 2 * WAIT_MS).len(), 1);
    let messages = own_entries.due(9, NOW + 2 * WAIT_MS);
    own_entries.sent(&messages[0], true);
    let written = messages[0].ms;
    assert_eq!(own_entries.due(9, written + AGAIN_MS - 1), []);
    assert_eq!(own_entries.due(9, written + AGAIN_MS).len(), 1);
    own_entries.write_all_again(NOW + 3 * WAIT_MS);
    assert_eq!(own_entries.due(9, NOW + 4 * WAIT_MS).len(), 1);
}

/// The store gets lost slots again, and the other nodes get the news.
#[test]
fn a_store_that_lacks_something_gets_it_again() {
    let mut own_entries = own_entries();
    own_entries.set(entry(1, NOW_S + 900), MARGIN_S, NOW);
    sent_news(&mut own_entries);
    let message = own_entries.due(9, NOW + WAIT_MS).remove(0);
    own_entries.sent(&message, true);
    let slot = Source::V4([192, 0, 2, 1]).slot();
    own_entries.compare(&HashMap::from([(slot, message.ms)]), NOW);
    assert_eq!(
        (own_entries.unsent(), own_entries.due(9, NOW + 9_999).len()),
        (0, 0)
    );
    for there in [HashMap::new(), HashMap::from([(slot, message.ms - 1)])] {
        own_entries.compare(&there, NOW);
        assert_eq!(own_entries.unsent(), 1);
        assert_eq!(own_entries.due(9, NOW + WAIT_MS).len(), 1);
        sent_news(&mut own_entries);
    }
}

/// A restarted node continues with the entries of its earlier start.
#[test]
fn a_node_that_starts_goes_on() {
    let mut before = own_entries();
    before.set(entry(1, NOW_S + 900), MARGIN_S, NOW);
    let message = before.due(9, NOW + WAIT_MS).remove(0);
    let mut own_entries = own_entries();
    own_entries.resume(message.clone(), NOW);
    assert_eq!((own_entries.len(), own_entries.unsent()), (1, 0));
    own_entries.set(entry(1, NOW_S + 900), MARGIN_S, NOW);
    assert_eq!(own_entries.unsent(), 0);
    // The node takes back a source that is no longer proven, in a message later than all before.
    own_entries.keep(NOW, |_| false);
    let news = own_entries.news(NOW - 50_000).unwrap();
    assert!(news.ms > message.ms);
    // The other nodes accept it.
    let mut map = SourceMap::new("b".try_into().unwrap(), 64);
    map.receive(message, NOW + WAIT_MS).unwrap();
    assert_eq!(map.len(), 1);
    map.receive(news, NOW + WAIT_MS).unwrap();
    assert!(map.is_empty());
}

#[test]
fn there_is_room_for_so_many() {
    let mut own_entries = own_entries();
    let of = |number: usize| SourceEntry {
        source: Source::V4((0x0a00_0000 + u32::try_from(number).unwrap()).to_be_bytes()),
        ..entry(0, NOW_S + 900)
    };
    for number in 0..MOST_OWN_ENTRIES {
        assert!(own_entries.set(of(number), MARGIN_S, NOW), "{number}");
    }
    assert!(!own_entries.set(of(MOST_OWN_ENTRIES), MARGIN_S, NOW));
    let mut sent = 0;
    while let Some(message) = own_entries.news(NOW) {
        assert!(message.entries.len() <= MOST_NEWS);
        sent += message.entries.len();
    }
    assert_eq!(sent, MOST_OWN_ENTRIES);
    let slots = own_entries.due(SLOTS, NOW + WAIT_MS);
    assert_eq!(slots.len(), SLOTS);
    assert!(
        slots
            .iter()
            .all(|message| message.entries.len() <= MOST_OF_SLOT)
    );
}
