use proptest::{collection::vec, prelude::*};

use super::*;
use crate::replicated::MergeOutcome;

const NOW: u64 = 1_700_000_000_000;
const NOW_S: u64 = NOW / 1_000;
const MARGIN_S: u64 = 60;

fn name(node: &str) -> Name {
    node.try_into().unwrap()
}

fn source(last: u8) -> Source {
    Source::V4([192, 0, 2, last])
}

fn v6(text: &str) -> Source {
    let address: Ipv6Addr = text.parse().unwrap();
    let mut half = [0; 8];
    half.copy_from_slice(&address.octets()[..8]);
    Source::V6(half)
}

fn proof(until_s: u64) -> Proof {
    Proof {
        since_s: NOW_S - 100,
        until_s,
        is_fresh: false,
        ipv6_prefix: 64,
    }
}

fn update(node: &str, ms: u64, source: Source, value: Proof) -> SourceUpdate {
    SourceUpdate {
        key: SourceKey {
            source,
            node: name(node),
        },
        stamp: Stamp {
            ms,
            node: name(node),
        },
        ends_ms: value.ends_ms(),
        value,
    }
}

fn map() -> Replicated<Proof> {
    Replicated::new(name("a"))
}

/// Sends all updates.
fn send(map: &mut Replicated<Proof>) -> Vec<SourceUpdate> {
    let keys = map.first_unsent(usize::MAX);
    let updates = keys.iter().filter_map(|key| map.unsent_update(key));
    let updates = updates.collect();
    for key in &keys {
        map.sent(key);
    }
    updates
}

fn unsent(map: &mut Replicated<Proof>) -> Vec<Proof> {
    let updates = send(map).into_iter();
    updates.map(|update| update.value).collect()
}

#[test]
fn sources_that_come_from_elsewhere() {
    let v4 = |text: &str| Source::V4(text.parse::<Ipv4Addr>().unwrap().octets());
    for good in ["192.0.2.7", "10.0.0.1", "223.255.255.255", "1.0.0.0"] {
        assert_eq!(v4(good).check(64), Ok(()), "{good}");
        assert_eq!(v4(good).to_string(), good);
    }
    for wrong in [
        "0.0.0.0",
        "0.1.2.3",
        "127.0.0.1",
        "169.254.1.1",
        "224.0.0.1",
        "255.255.255.255",
        "240.0.0.1",
    ] {
        assert_eq!(v4(wrong).check(64), Err(WRONG), "{wrong}");
    }
    assert_eq!(v6("2001:db8:0:7::").check(64), Ok(()));
    assert_eq!(v6("2001:db8:0:700::").check(56), Ok(()));
    for wrong in [
        "::",
        "2001:db8:0:7::",
        "ff02::",
        "fe80::",
        "ffff:ffff:c000:200::",
    ] {
        assert_eq!(v6(wrong).check(56), Err(WRONG), "{wrong}");
    }
}

#[track_caller]
fn check(expected: Result<(), Refusal>, change: impl FnOnce(&mut SourceUpdate)) {
    let mut update = update("b", NOW, source(1), proof(NOW_S + LONGEST_S));
    change(&mut update);
    assert_eq!(Proof::check(&update, 64, NOW), expected, "{update:?}");
}

#[test]
fn what_a_node_sends() {
    check(Ok(()), |update| update.value.since_s = NOW_S + 60);
    check(Err(AHEAD), |update| update.value.since_s = NOW_S + 61);
    check(Err(AHEAD), |update| update.stamp.ms = NOW + 60_001);
    check(Err(WRONG), |update| {
        (update.value.until_s, update.ends_ms) = (u64::MAX, u64::MAX);
    });
    check(Err(WRONG), |update| update.ends_ms = 0);
    check(Err(WRONG), |update| update.key.node = name("c"));
    check(Err(WRONG), |update| {
        update.key.source = Source::V4([127, 0, 0, 1]);
    });
    check(Ok(()), |update| update.value.ipv6_prefix = 56);
    check(Err(PREFIX), |update| {
        update.key.source = v6("2001:db8:0:700::");
        update.value.ipv6_prefix = 56;
    });
}

#[test]
fn a_node_speaks_for_itself_alone() {
    let mut map = map();
    let take = |map: &mut Replicated<Proof>, node, ms, value| {
        map.take(update(node, ms, source(1), value), NOW)
    };
    assert_eq!(
        take(&mut map, "b", NOW - 9, proof(NOW_S + 500)),
        MergeOutcome::New
    );
    assert_eq!(
        take(&mut map, "c", NOW - 8, proof(NOW_S + 300)),
        MergeOutcome::New
    );
    assert_eq!(take(&mut map, "b", NOW - 7, proof(0)), MergeOutcome::New);
    // The other node says so, too.
    assert_eq!(map.proof(source(1), NOW), Some(proof(NOW_S + 300)));
    assert_eq!(map.proof(source(1), NOW + 300_000), None);
    // No node sends entries of others, nor counts them as its own.
    map.begin_reading();
    map.end_reading();
    assert_eq!(map.unsent(), 0);
    take(&mut map, "a", NOW, proof(NOW_S + 900));
    assert_eq!(map.proof(source(1), NOW), Some(proof(NOW_S + 300)));
    assert_eq!(
        map.active(NOW, []),
        [("a", 1), ("c", 1)]
            .map(|(node, count)| (node.to_owned(), count))
            .into()
    );
}

/// Together they hold from the earliest to the last end, so no later time must choose among them again.
#[test]
fn proofs_of_several_nodes_count_together() {
    let mut map = map();
    let fresh = Proof {
        is_fresh: true,
        since_s: 5,
        ..proof(NOW_S + 9_000)
    };
    let old = Proof {
        since_s: 1,
        ..proof(NOW_S + 500)
    };
    let both = Proof {
        until_s: fresh.until_s,
        ..old
    };
    for (node, value, together) in [("b", fresh, fresh), ("d", old, both)] {
        map.take(update(node, NOW, source(1), value), NOW);
        assert_eq!(map.proof(source(1), NOW), Some(together), "{node}");
    }
    assert_eq!(map.proof(source(1), NOW + 600_000), Some(fresh));
    assert_eq!(map.proof(source(1), NOW + 9_000_000), None);
}

#[test]
fn what_is_not_repeated_is_forgotten() {
    let mut map = map();
    let month = proof(NOW_S + 30 * 86_400);
    map.take(update("b", NOW, source(1), month), NOW);
    map.take(update("b", NOW, source(2), proof(NOW_S + 5)), NOW);
    assert_eq!(map.forget(NOW + 5_000 + AFTERWARDS_MS).len(), 1);
    assert!(map.forget(NOW + UNREPEATED_MS - 1).is_empty());
    // Withdrawn, it is remembered for as long as the entry would be believed.
    map.take(update("b", NOW + 1, source(1), proof(0)), NOW + 1);
    assert!(map.forget(NOW + UNREPEATED_MS).is_empty());
    assert_eq!(map.forget(NOW + 1 + UNREPEATED_MS).len(), 1);
    let again = update("b", NOW, source(1), month);
    assert_eq!(map.take(again, NOW + 1 + UNREPEATED_MS), MergeOutcome::Over);
}

#[test]
fn only_changes_are_sent() {
    let mut map = map();
    let sent = proof(NOW_S + 900);
    assert!(map.prove(source(1), sent, MARGIN_S, NOW));
    assert_eq!(unsent(&mut map), [sent]);
    let since = |since_s, proof| Proof { since_s, ..proof };
    for same in [
        sent,
        proof(NOW_S + 900 + MARGIN_S - 1),
        proof(NOW_S + 897),
        since(sent.since_s + 3, sent),
    ] {
        assert!(map.prove(source(1), same, MARGIN_S, NOW));
        assert_eq!(unsent(&mut map), [], "{same:?}");
    }
    let fresh = Proof {
        is_fresh: true,
        ..proof(NOW_S + 300)
    };
    for new in [
        proof(NOW_S + 900 + MARGIN_S),
        proof(NOW_S + 300),
        fresh,
        since(NOW_S, proof(NOW_S + 300)),
    ] {
        assert!(map.prove(source(1), new, MARGIN_S, NOW));
        assert_eq!(unsent(&mut map), [new]);
    }
    // No entry about this host itself, and none without an end.
    assert!(map.prove(Source::V4([127, 0, 0, 1]), sent, MARGIN_S, NOW));
    assert_eq!(map.len(), 1);
    map.prove(source(2), proof(u64::MAX), MARGIN_S, NOW);
    let sent = send(&mut map);
    assert_eq!(Proof::check(&sent[0], 64, NOW), Ok(()));
}

/// Renews this node's proofs, a page at a time.
fn renew(map: &mut Replicated<Proof>, now_ms: u64, stays: impl Fn(Source) -> bool) {
    let mut next = Some(SourceKey::first_of(Source::V4([0; 4])));
    while let Some(first) = next {
        let (sources, after) = map.page(first, 2);
        for source in sources {
            map.renew(source, stays(source), now_ms);
        }
        next = after;
    }
}

#[test]
fn proofs_are_taken_back_and_repeated() {
    let mut map = map();
    for last in 1..=3 {
        map.prove(source(last), proof(NOW_S + 900_000), MARGIN_S, NOW);
    }
    map.take(update("b", NOW, source(4), proof(NOW_S + 900)), NOW);
    assert_eq!(unsent(&mut map).len(), 3);
    renew(&mut map, NOW, |kept| kept != source(2));
    assert_eq!(
        unsent(&mut map),
        [proof(0)].map(|gone| Proof { since_s: 0, ..gone })
    );
    renew(&mut map, NOW + REPEATED_MS - 1, |_| true);
    assert_eq!(map.unsent(), 0);
    renew(&mut map, NOW + REPEATED_MS, |_| true);
    assert_eq!(unsent(&mut map), [proof(NOW_S + 900_000); 2]);
    assert!(map.prove(source(2), proof(NOW_S + 900), MARGIN_S, NOW));
    assert_eq!(unsent(&mut map), [proof(NOW_S + 900)]);
}

#[test]
fn there_is_room_for_so_many() {
    let mut map = map();
    let mut number = 0_u32;
    let mut next = || {
        number += 1;
        Source::V4((0x0a00_0000 + number).to_be_bytes())
    };
    for _ in 0..MOST_OWN_ENTRIES {
        assert!(map.prove(next(), proof(NOW_S + 900), MARGIN_S, NOW));
    }
    assert!(!map.prove(next(), proof(NOW_S + 900), MARGIN_S, NOW));
    for node in ["b", "c", "d", "e", "f"] {
        for _ in 0..Proof::MOST_ALIKE {
            map.take(update(node, NOW, next(), proof(NOW_S + 500)), NOW);
        }
        let more = update(node, NOW, next(), proof(0));
        assert_eq!(map.take(more, NOW), MergeOutcome::Full);
    }
    assert_eq!(map.len(), Proof::MOST);
    let more = update("g", NOW, next(), proof(NOW_S + 500));
    assert_eq!(map.take(more, NOW), MergeOutcome::Full);
}

proptest! {
    /// Repeated and late updates never lengthen a proof, nor bring a withdrawn one back.
    #[test]
    fn nothing_repeated_lengthens_anything(
        updates in vec((0_u8..2, 1_u64..6, 1_u8..4, 0_u64..3), 1..16),
        order in vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let all: Vec<_> = updates.iter().map(|(node, ms, last, until)| {
            let until_s = if *until == 0 { 0 } else { NOW_S + until * 100 };
            update(if *node == 0 { "b" } else { "c" }, NOW + ms, source(*last), proof(until_s))
        }).collect();
        let (mut once, mut repeated) = (map(), map());
        for update in &all {
            once.take(update.clone(), NOW);
        }
        for index in &order {
            repeated.take(index.get(&all).clone(), NOW);
        }
        for update in all.iter().rev() {
            repeated.take(update.clone(), NOW);
        }
        for last in 1..4 {
            let last_update = |node| {
                let of = all.iter().filter(move |update| update.key.source == source(last) && update.key.node == name(node));
                of.max_by_key(|update| (update.stamp.ms, update.value)).filter(|update| update.value.until_s > 0)
            };
            let is_proven = last_update("b").is_some() || last_update("c").is_some();
            prop_assert_eq!(once.proof(source(last), NOW).is_some(), is_proven);
            prop_assert_eq!(once.proof(source(last), NOW), repeated.proof(source(last), NOW));
        }
    }
}
