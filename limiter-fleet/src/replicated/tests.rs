use proptest::{collection::vec, prelude::*, sample::Index};

use super::*;
use crate::bans::{BanId, BanState, BanUpdate};

const NOW: u64 = 1_700_000_000_000;

const MONTH_MS: u64 = 30 * 24 * 3_600_000;

fn id(last: u8) -> BanId {
    BanId {
        prefix: format!("192.0.2.{last}/32").parse().unwrap(),
        origin: "operator".into(),
    }
}

fn name(node: u8) -> Name {
    char::from(b'a' + node)
        .to_string()
        .as_str()
        .try_into()
        .unwrap()
}

fn state(until_ms: Option<u64>) -> BanState {
    BanState::Banned {
        until_ms,
        reason: "why".into(),
        limit: None,
    }
}

fn any_update() -> impl Strategy<Value = BanUpdate> {
    let state = prop_oneof![
        Just(BanState::Lifted),
        (0_u64..4_000_000).prop_map(|more| state(Some(NOW + more))),
        Just(state(None)),
    ];
    let ends = prop_oneof![Just(0), NOW..NOW + 5_000_000, Just(u64::MAX)];
    (0_u8..3, NOW - 3..NOW, 0_u8..3, state, ends).prop_map(|(last, ms, node, state, ends_ms)| {
        BanUpdate {
            key: id(last),
            stamp: Stamp {
                ms,
                node: name(node),
            },
            ends_ms: ends_ms.max(state.ends_ms()),
            value: state,
        }
    })
}

fn map() -> Replicated<BanState> {
    Replicated::new(name(0))
}

fn merged(updates: impl IntoIterator<Item = BanUpdate>) -> BTreeMap<BanId, Entry<BanState>> {
    let mut map = map();
    for update in updates {
        map.take(update, NOW);
    }
    map.entries
}

/// Returns the last update of each key.
fn updates_of(map: &Replicated<BanState>) -> Vec<BanUpdate> {
    let updates = map.entries.iter().map(|(key, entry)| BanUpdate {
        key: key.clone(),
        stamp: entry.stamp.clone(),
        value: entry.value.clone(),
        ends_ms: entry.ends_ms,
    });
    updates.collect()
}

proptest! {
    /// In any order, with any repetitions.
    #[test]
    fn nodes_that_received_the_same_agree(
        updates in vec(any_update(), 1..12),
        order in vec(any::<Index>(), 0..40),
    ) {
        let again = order.iter().map(|index| index.get(&updates).clone());
        let other = merged(again.chain(updates.iter().rev().cloned()));
        prop_assert_eq!(merged(updates.iter().cloned()), other);
    }

    /// The same when a snapshot of other nodes comes first.
    #[test]
    fn a_node_that_begins_with_a_snapshot_agrees(
        updates in vec(any_update(), 1..12),
        missed in any::<Index>(),
    ) {
        let missed = missed.index(updates.len());
        let mut snapshot = map();
        for update in &updates[..missed] {
            snapshot.take(update.clone(), NOW);
        }
        let begun = updates_of(&snapshot).into_iter();
        let late = merged(begun.chain(updates[missed..].iter().cloned()));
        prop_assert_eq!(merged(updates), late);
    }

    /// A node's own update wins, however far ahead other clocks are.
    #[test]
    fn the_own_update_is_the_last(updates in vec(any_update(), 1..12), behind in 0_u64..1_000_000) {
        let mut map = map();
        for update in updates {
            map.take(update, NOW);
        }
        let before = map.get(&id(0)).map_or(0, |entry| entry.ends_ms);
        prop_assert!(map.record(id(0), BanState::Lifted, 0, NOW - behind));
        prop_assert_eq!(&map.get(&id(0)).unwrap().value, &BanState::Lifted);
        prop_assert_eq!(map.get(&id(0)).unwrap().ends_ms, before);
    }

    #[test]
    fn nothing_repeated_brings_a_ban_back(updates in vec(any_update(), 1..12), later in 0_u64..9_000_000) {
        let mut map = map();
        for update in &updates {
            map.take(update.clone(), NOW);
        }
        for last in 0..3 {
            map.record(id(last), BanState::Lifted, 0, NOW);
        }
        map.forget(NOW + later);
        for update in updates {
            map.take(update, NOW + later);
        }
        let mut entries = map.entries.iter();
        prop_assert!(entries.all(|(_, entry)| !entry.holds(NOW + later)));
    }

    /// The running count equals a walk over all entries, except that each second counts to its end.
    #[test]
    fn bans_of_others_are_counted_as_they_change(
        steps in vec((any_update(), any::<bool>(), 0_u64..2_000_000, 0_u8..8), 1..24),
    ) {
        let mut map = map();
        let mut now = NOW;
        for (update, is_own, later, but) in steps {
            if is_own {
                map.record(update.key, update.value, update.ends_ms, NOW);
            } else {
                map.take(update, NOW);
            }
            now += later;
            map.forget(now);
            let second = now / 1_000 * 1_000;
            let but: Vec<_> = (0..3).filter(|last| but >> last & 1 == 1).map(id).collect();
            let walk = map.entries.iter().filter(|(id, entry)| {
                entry.holds(second) && entry.stamp.node != name(0) && !but.contains(id)
            });
            let walked = walk.count() as u64;
            let kept = map.active(second + 999, &but);
            prop_assert_eq!(kept.values().sum::<u64>(), walked);
            prop_assert!(!kept.values().any(|count| *count == 0));
        }
    }
}

#[test]
fn what_is_over_is_forgotten() {
    let mut map = map();
    map.record(id(1), state(Some(NOW + 1_000)), 0, NOW);
    map.record(id(2), state(None), 0, NOW);
    assert!(map.get(&id(1)).unwrap().holds(NOW + 999));
    assert!(!map.get(&id(1)).unwrap().holds(NOW + 1_000));
    assert!(map.get(&id(2)).unwrap().holds(u64::MAX - 1));
    assert_eq!(map.forget(NOW + 1_000 + AFTERWARDS_MS - 1), []);
    let later = NOW + 1_000 + AFTERWARDS_MS;
    assert_eq!(map.forget(later), [id(1)]);
    assert_eq!(map.forget(u64::MAX - 1), []);
    // A lifted ban without an end is remembered for a month.
    map.record(id(2), BanState::Lifted, 0, later);
    assert_eq!(map.forget(later + MONTH_MS), []);
    let month = later + MONTH_MS + AFTERWARDS_MS;
    assert_eq!(map.forget(month), [id(2)]);
    assert!(map.is_empty());
    let mut over = Replicated::new(name(0));
    over.record(id(3), state(Some(NOW + 1)), 0, NOW);
    let update = updates_of(&over).remove(0);
    assert_eq!(map.take(update, month), MergeOutcome::Over);
}

#[test]
fn there_is_room_for_so_many() {
    let mut map = map();
    let of = |number: usize| {
        let number = u32::try_from(number).unwrap();
        BanId {
            prefix: std::net::IpAddr::from(number.to_be_bytes()).into(),
            origin: "x".into(),
        }
    };
    for number in 0..BanState::MOST {
        assert!(map.record(of(number), state(None), 0, NOW));
    }
    assert!(!map.record(of(BanState::MOST), state(None), 0, NOW));
    assert!(map.record(of(7), BanState::Lifted, 0, NOW));
    assert_eq!(map.len(), BanState::MOST);
}

/// A store gets again exactly the updates that it lacks.
#[test]
fn a_store_gets_what_it_lacks() {
    let mut map = map();
    for last in 1..=4 {
        map.record(id(last), state(None), 0, NOW);
    }
    for key in map.first_unsent(3) {
        assert_eq!(map.unsent_update(&key).unwrap().key, key);
        map.sent(&key);
    }
    assert_eq!(map.first_unsent(9), [id(4)]);
    map.begin_reading();
    for last in 2..=4 {
        map.found(&id(last));
    }
    assert_eq!(map.unsent(), 0);
    map.end_reading();
    assert_eq!(map.first_unsent(9), [id(1)]);
    map.doubt(id(4));
    assert_eq!(map.unsent(), 2);
    map.sent(&id(1));
    // An update of another node comes first.
    let lifted = BanUpdate {
        key: id(4),
        stamp: Stamp {
            ms: NOW + 1,
            node: name(1),
        },
        value: BanState::Lifted,
        ends_ms: u64::MAX,
    };
    assert_eq!(map.take(lifted, NOW), MergeOutcome::New);
    assert_eq!(map.unsent(), 0);
    map.doubt(id(9));
    assert_eq!(map.unsent(), 0, "no such entry");
}

#[test]
fn names_are_in_memory_once_and_not_for_ever() {
    let mut map = map();
    for (last, node) in [(1, 1), (2, 1), (3, 2)] {
        let stamp = Stamp {
            ms: NOW,
            node: name(node),
        };
        let update = BanUpdate {
            key: id(last),
            stamp,
            value: state(Some(NOW + 1)),
            ends_ms: NOW + 1,
        };
        map.take(update, NOW);
    }
    assert_eq!(map.names.len(), 2);
    map.forget(NOW + 2 * AFTERWARDS_MS);
    assert!(map.names.is_empty() && map.is_empty());
}

/// Returns the outcome of an update about a ban that has held here since NOW, and whether there is something to send.
fn after(ms: u64, value: BanState) -> (MergeOutcome, bool) {
    let mut map = map();
    map.seed(id(1), NOW, state(Some(NOW + 9_000)));
    let update = BanUpdate {
        key: id(1),
        stamp: Stamp { ms, node: name(1) },
        ends_ms: value.ends_ms().max(NOW + 9_000),
        value,
    };
    let taken = map.take(update, NOW);
    map.record_seeds();
    (taken, map.unsent() > 0)
}

#[test]
fn bans_from_before_the_fleet_was_read() {
    // The update is about the same ban.
    let same = after(NOW - 5, state(Some(NOW + 8_000)));
    assert_eq!(same, (MergeOutcome::Known, false));
    // The update has another end or lifts the ban, and is later or earlier.
    let other = after(NOW + 5, state(Some(NOW + 1_000)));
    assert_eq!(other, (MergeOutcome::New, false));
    assert_eq!(after(NOW + 5, BanState::Lifted), (MergeOutcome::New, false));
    assert_eq!(
        after(NOW - 5, BanState::Lifted),
        (MergeOutcome::Known, true)
    );
}
