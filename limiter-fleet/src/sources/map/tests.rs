use proptest::{collection::vec, prelude::*};

use super::*;

const NOW: u64 = 1_700_000_000_000;
const NOW_S: u64 = NOW / 1_000;

fn source(last: u8) -> Source {
    Source::V4([192, 0, 2, last])
}

fn entry(last: u8, until_s: u64) -> SourceEntry {
    SourceEntry {
        source: source(last),
        since_s: NOW_S - 100,
        until_s,
        is_fresh: false,
    }
}

fn message(node: &str, ms: u64, part: Part, entries: &[SourceEntry]) -> SourceMessage {
    SourceMessage {
        node: node.try_into().unwrap(),
        ms,
        ipv6_prefix: 64,
        part,
        entries: entries.to_vec(),
    }
}

fn map() -> SourceMap {
    SourceMap::new("a".try_into().unwrap(), 64)
}

/// Takes news; returns the number of changed sources.
fn news(map: &mut SourceMap, node: &str, ms: u64, entries: &[SourceEntry]) -> usize {
    let changes = map
        .receive(message(node, ms, Part::News, entries), NOW)
        .unwrap();
    assert_eq!(changes.refused, []);
    changes.sources.len()
}

fn slot(map: &mut SourceMap, node: &str, ms: u64, entries: &[SourceEntry]) -> usize {
    let part = Part::Slot(source(1).slot());
    let changes = map.receive(message(node, ms, part, entries), NOW).unwrap();
    changes.sources.len()
}

#[test]
fn the_later_message_counts_and_nothing_repeated() {
    let mut map = map();
    let later = entry(1, NOW_S + 900);
    assert_eq!(news(&mut map, "b", NOW - 9, &[entry(1, NOW_S + 500)]), 1);
    assert_eq!(news(&mut map, "b", NOW - 8, &[later]), 1);
    for ms in [NOW - 9, NOW - 8] {
        assert_eq!(news(&mut map, "b", ms, &[entry(1, NOW_S + 5_000)]), 0);
    }
    assert_eq!(map.entry(source(1), NOW_S), Some(later));
    // An entry taken back stays so.
    assert_eq!(news(&mut map, "b", NOW - 7, &[entry(1, 0)]), 1);
    assert_eq!(news(&mut map, "b", NOW - 8, &[later]), 0);
    assert_eq!(slot(&mut map, "b", NOW - 6, &[]), 0);
    assert_eq!(slot(&mut map, "b", NOW - 8, &[later]), 0);
    assert_eq!(map.entry(source(1), NOW_S), None);
    assert!(map.is_empty());
}

#[test]
fn a_slot_is_all_that_a_node_has_of_it() {
    let mut map = map();
    let entries = [entry(1, NOW_S + 500)];
    assert_eq!(slot(&mut map, "b", NOW - 9, &entries), 1);
    assert_eq!(slot(&mut map, "b", NOW - 9, &[]), 0, "it is repeated");
    assert_eq!(
        slot(&mut map, "b", NOW - 8, &entries),
        0,
        "it says the same"
    );
    // Newer news survive the slot.
    let late = entry(1, NOW_S + 600);
    assert_eq!(news(&mut map, "b", NOW - 5, &[late]), 1);
    assert_eq!(slot(&mut map, "b", NOW - 6, &[]), 0);
    assert_eq!(map.entry(source(1), NOW_S), Some(late));
    // News older than the slot have no effect.
    assert_eq!(slot(&mut map, "b", NOW - 3, &[]), 1);
    assert_eq!(news(&mut map, "b", NOW - 4, &[late]), 0);
    assert!(map.is_empty());
    // The entry belongs to another slot.
    let other = (2..=255).find(|last| source(*last).slot() != source(1).slot());
    let part = Part::Slot(source(1).slot());
    let wrong = message("b", NOW, part, &[entry(other.unwrap(), NOW_S + 5)]);
    let changes = map.receive(wrong, NOW).unwrap();
    assert_eq!(changes.refused, [MessageError::Wrong]);
    assert!(map.is_empty() && changes.sources.is_empty());
}

#[test]
fn a_node_speaks_for_itself_alone() {
    let mut map = map();
    news(&mut map, "b", NOW - 9, &[entry(1, NOW_S + 500)]);
    news(&mut map, "c", NOW - 8, &[entry(1, NOW_S + 300)]);
    assert_eq!(news(&mut map, "b", NOW - 7, &[entry(1, 0)]), 1);
    assert_eq!(
        map.entry(source(1), NOW_S),
        Some(entry(1, NOW_S + 300)),
        "c says so, too"
    );
    // A node ignores its own messages.
    let own = message("a", NOW, Part::News, &[entry(2, NOW_S + 500)]);
    assert_eq!(map.receive(own, NOW), Ok(Changes::default()));
    assert_eq!(map.entry(source(2), NOW_S), None);
}

#[test]
fn entries_end() {
    let mut map = map();
    news(
        &mut map,
        "b",
        NOW,
        &[entry(1, NOW_S + 300), entry(2, NOW_S + 900)],
    );
    assert!(map.entry(source(1), NOW_S + 299).is_some());
    assert_eq!(map.entry(source(1), NOW_S + 300), None);
    assert_eq!(map.forget(NOW + 179_000), []);
    assert_eq!(map.forget(NOW + 180_000), [source(1)], "it is over soon");
    assert_eq!(map.len(), 2);
    assert_eq!(map.forget(NOW + 300_000), [source(1)]);
    assert_eq!(map.len(), 1);
    assert_eq!(map.sources().collect::<Vec<_>>(), [source(2)]);
    map.forget(NOW + 900_000);
    assert!(map.is_empty() && !map.peers.is_empty());
    map.forget(NOW + 900_000 + SLOT_MS);
    assert!(map.peers.is_empty());
}

#[test]
fn the_best_entry_counts() {
    let mut map = map();
    let fresh = SourceEntry {
        is_fresh: true,
        since_s: 0,
        ..entry(1, NOW_S + 9_000)
    };
    let old = SourceEntry {
        since_s: 1,
        ..entry(1, NOW_S + 500)
    };
    news(&mut map, "b", NOW, &[fresh]);
    assert_eq!(map.entry(source(1), NOW_S), Some(fresh));
    news(&mut map, "c", NOW, &[entry(1, NOW_S + 900)]);
    assert_eq!(map.entry(source(1), NOW_S), Some(entry(1, NOW_S + 900)));
    news(&mut map, "d", NOW, &[old]);
    assert_eq!(map.entry(source(1), NOW_S), Some(old));
    // The other entry ends soon.
    assert_eq!(
        map.entry(source(1), NOW_S + 400),
        Some(entry(1, NOW_S + 900))
    );
}

#[test]
fn refused_messages() {
    let mut map = map();
    let entries = [entry(1, NOW_S + 500)];
    let mut receive = |ms, part, now| map.receive(message("b", ms, part, &entries), now);
    let of_slot = Part::Slot(source(1).slot());
    for part in [Part::News, of_slot] {
        assert_eq!(receive(NOW + 60_001, part, NOW), Err(MessageError::Ahead));
    }
    assert_eq!(
        receive(NOW, Part::News, NOW + NEWS_MS + 1),
        Err(MessageError::Old)
    );
    assert_eq!(
        receive(NOW, of_slot, NOW + SLOT_MS + 1),
        Err(MessageError::Old)
    );
    assert!(receive(NOW + 60_000, of_slot, NOW).is_ok());
    let wrong = [
        SourceEntry {
            source: Source::V4([127, 0, 0, 1]),
            ..entries[0]
        },
        SourceEntry {
            since_s: NOW_S + 61,
            ..entry(2, NOW_S + 500)
        },
        entry(3, u64::MAX),
        entry(4, NOW_S + 500),
    ];
    let changes = map
        .receive(message("c", NOW, Part::News, &wrong), NOW)
        .unwrap();
    assert_eq!(changes.sources, [source(4)]);
    assert_eq!(changes.refused, [MessageError::Wrong, MessageError::Ahead]);
}

#[test]
fn there_is_room_for_so_many() {
    let mut map = map();
    let mut number = 0_u32;
    let mut entries = |count: usize| {
        let entries = (0..count).map(|_| {
            number += 1;
            SourceEntry {
                source: Source::V4((0x0a00_0000 + number).to_be_bytes()),
                ..entry(0, NOW_S + 500)
            }
        });
        entries.collect::<Vec<_>>()
    };
    for node in ["b", "c", "d", "e", "f"] {
        assert_eq!(
            news(&mut map, node, NOW, &entries(MOST_OWN_ENTRIES)),
            MOST_OWN_ENTRIES
        );
        let more = map.receive(message(node, NOW + 1, Part::News, &entries(1)), NOW);
        assert_eq!(more.unwrap().refused, [MessageError::Full]);
    }
    assert_eq!(map.len(), MOST_RECEIVED_ENTRIES);
    let more = map.receive(message("g", NOW, Part::News, &entries(1)), NOW);
    assert_eq!(more.unwrap().refused, [MessageError::Full]);
}

proptest! {
    /// Repeated and late messages never activate an entry that its node has not sent, or has taken back
    /// since; and the count stays right.
    #[test]
    fn nothing_repeated_lengthens_anything(
        messages in vec((0_u8..2, 1_u64..6, any::<bool>(), vec((1_u8..4, 0_u64..3), 0..3)), 1..16),
    ) {
        let mut map = map();
        let mut longest = HashMap::<(u8, u8), u64>::new();
        for (node, order, is_slot, entries) in messages {
            let entries: Vec<_> = entries.iter().map(|(last, until)| {
                entry(*last, if *until == 0 { 0 } else { NOW_S + until * 100 })
            }).collect();
            for entry in &entries {
                let Source::V4([.., last]) = entry.source else { unreachable!() };
                let most = longest.entry((node, last)).or_default();
                *most = (*most).max(entry.until_s);
            }
            let name = char::from(b'b' + node).to_string();
            let part = if is_slot { Part::Slot(source(1).slot()) } else { Part::News };
            let _ = map.receive(message(&name, NOW + order, part, &entries), NOW);
            let held = map.sources().count();
            prop_assert_eq!(map.len(), held);
        }
        for last in 1..4 {
            if let Some(found) = map.entry(source(last), NOW_S) {
                let most = longest.iter().filter(|((_, of), _)| *of == last).map(|(_, until)| *until);
                prop_assert!(Some(found.until_s) <= most.max());
            }
        }
    }
}
