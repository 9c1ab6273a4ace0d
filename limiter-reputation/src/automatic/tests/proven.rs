//! Limits that ban only proven sources.

use limiter_policy::policy::{AutomaticBan, BanOnly};

use super::*;

fn only_proven(range_after: Option<u32>) -> AutomaticBan {
    AutomaticBan {
        only: Some(BanOnly::Proven),
        ..terms(10, range_after)
    }
}

fn banned(due: &DueBans) -> Vec<String> {
    let offences = due.offences.iter();
    offences.map(|offence| shown(&offence.prefix())).collect()
}

#[test]
fn only_those_who_are_or_were_proven_are_banned() {
    let sources = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5"];
    let is_proven = |prefix: &BanKey| ["10.0.0.1", "10.0.0.3"].contains(&shown(prefix).as_str());
    let mut scene = Scene::new(&[only_proven(None), terms(10, None)]);
    for address in sources {
        scene.drops(0, 1, address, 20);
        scene.drops(0, 2, address, 20);
    }
    let due = scene.decide_by(1_000, is_proven);
    let by = |limit: u16| {
        let offences = due.offences.iter();
        offences
            .filter(move |one| one.subject.limit == limit)
            .count()
    };
    assert_eq!((by(1), by(2)), (2, 5), "the other limit does not ask");
    assert_eq!(due.unproven, [(LimitId(1), 3)].into());
    for offence in &due.offences {
        scene.decider.banned(offence, ns(60_000));
    }

    // Offenders that go on are found again ten seconds later; one source is proven by then.
    scene.drops(1_500, 1, "10.0.0.5", 20);
    let due = scene.decide_by(2_000, is_proven);
    assert!(due.offences.is_empty() && due.unproven.is_empty());
    scene.decide_by(11_500, is_proven);
    scene.drops(12_000, 1, "10.0.0.5", 20);
    let due = scene.decide_by(12_500, |_| true);
    assert_eq!(banned(&due), ["10.0.0.5"]);
}

/// Forged sources, however many, keep no other source from being banned.
#[test]
fn a_flood_of_unproven_sources_takes_no_allowance() {
    let mut scene = Scene::new(&[only_proven(None)]);
    for source in 0..3_000 {
        let address = format!("10.0.{}.{}", source / 250, source % 250);
        scene.drops(0, 1, &address, 1_000);
    }
    scene.drops(0, 1, "192.0.2.1", 10);
    let is_real = |prefix: &BanKey| shown(prefix) == "192.0.2.1";
    let due = scene.decide_by(1_000, is_real);
    assert_eq!(banned(&due), ["192.0.2.1"]);
    assert_eq!(due.unproven, [(LimitId(1), 3_000)].into());
    assert!(due.delayed.is_empty());
}

/// In a range that is not proven as a whole, each proven source is banned by itself.
#[test]
fn a_range_that_is_not_proven_is_taken_apart() {
    let mut scene = Scene::new(&[only_proven(Some(2))]);
    for address in ["2001:db8::1", "2001:db8::2"] {
        scene.drops(0, 1, address, 10);
    }
    let is_first = |prefix: &BanKey| shown(prefix) == "2001:db8::1";
    let due = scene.decide_by(1_000, is_first);
    assert!(due.offences.is_empty());
    assert!(scene.decider.is_unfinished());
    let due = scene.decide_by(1_500, is_first);
    assert_eq!(banned(&due), ["2001:db8::1"]);

    let mut scene = Scene::new(&[only_proven(Some(2))]);
    for address in ["2001:db8::1", "2001:db8::2"] {
        scene.drops(0, 1, address, 10);
    }
    let due = scene.decide_by(1_000, |_| true);
    assert_eq!(banned(&due), ["2001:db8::/64"]);
}
