//! Cases worked out by hand.

use std::net::IpAddr;

use limiter_common::{
    address::Address,
    ban::BanKey,
    limit::LimitId,
    offender::{Dropper, Offender, OffenderKey},
};
use limiter_policy::policy::{AutomaticBan, Mode};

use super::{MS, SECOND, Scene, ns, policy, shown, terms};
use crate::automatic::{BANS_PER_SECOND, Decider, MOST_IGNORED, Offence, Subject};

const ONE: &str = "192.0.2.1";
const OTHER: &str = "192.0.2.2";

#[test]
fn as_many_drops_as_it_takes() {
    let mut scene = Scene::new(&[terms(100, None)]);
    scene.drops(10, 1, ONE, 99);
    scene.drops(20, 1, OTHER, 100);
    scene.check(1_000, &[(1, OTHER, 100, 1)]);
    // The banned source needs as many drops again.
    scene.check(2_000, &[]);
    scene.drops(2_500, 1, ONE, 1);
    scene.check(3_000, &[(1, ONE, 100, 1)]);
}

/// A slice is a second: drops that the poll in second 0 finds count up to second 9.
#[test]
fn the_window_s_edges() {
    for (last_ms, is_banned) in [(9_000, true), (9_999, true), (10_000, false)] {
        let mut scene = Scene::new(&[terms(100, None)]);
        scene.drops(0, 1, ONE, 50);
        scene.check(500, &[]);
        scene.drops(last_ms - 1, 1, ONE, 50);
        let expected = [(1, ONE, 100, 1)];
        scene.check(last_ms, if is_banned { &expected } else { &[] });
    }
}

#[test]
fn slow_drops_never_ban() {
    let mut scene = Scene::new(&[terms(100, None)]);
    for second in 1..1_000 {
        // At most ten polls of nine drops each.
        scene.drops(second * 1_000 - 1, 1, ONE, 9);
        scene.check(second * 1_000, &[]);
    }
}

#[test]
fn what_was_before_does_not_count() {
    let mut scene = Scene::new(&[terms(100, None)]);
    // Its first drop was before the decider began.
    scene.recorded_before(1, ONE, 1_000);
    scene.check(1_000, &[]);
    scene.drops(1_500, 1, ONE, 99);
    scene.check(2_000, &[]);
    scene.drops(2_500, 1, ONE, 1);
    scene.check(3_000, &[(1, ONE, 100, 1)]);
}

#[test]
fn forgotten_sources_begin_again() {
    let mut scene = Scene::new(&[terms(100, None)]);
    scene.drops(0, 1, ONE, 80);
    scene.check(1_000, &[]);
    scene.forget(1, ONE);
    // It is back before the next poll: all of its recorded drops are new.
    scene.drops(1_100, 1, ONE, 99);
    scene.check(2_000, &[(1, ONE, 179, 1)]);
    scene.drops(3_100, 1, OTHER, 80);
    scene.check(4_000, &[]);
    scene.forget(1, OTHER);
    scene.check(5_000, &[]);
    scene.drops(5_100, 1, OTHER, 99);
    scene.check(6_000, &[]);
}

/// The kernel may record a drop between the time of a poll and the reading.
#[test]
fn what_is_recorded_while_it_is_read_counts_once() {
    let mut scene = Scene::new(&[terms(100, None)]);
    scene.drops(1_001, 1, ONE, 60);
    scene.check(1_000, &[]);
    scene.drops(1_500, 1, ONE, 39);
    scene.check(2_000, &[]);
    scene.drops(2_500, 1, ONE, 1);
    scene.check(3_000, &[(1, ONE, 100, 1)]);
}

/// Or between reading the counters, which show nothing new, and recording.
#[test]
fn what_was_just_missed_counts() {
    let mut scene = Scene::new(&[terms(100, None)]);
    scene.drops(999, 1, ONE, 1);
    scene.decider.nothing_new(ns(1_000));
    scene.drops(1_500, 1, ONE, 99);
    scene.check(2_000, &[(1, ONE, 100, 1)]);
}

/// With `scope: interface` there is a record of an address for each interface.
#[test]
fn interfaces_add_up() {
    let mut scene = Scene::new(&[terms(100, None)]);
    scene.drops(0, 1, ONE, 60);
    let twice = scene.recorded();
    let due = scene.decide_at(1_000, [twice.clone(), twice].concat());
    assert_eq!(due.offences[0].drops, 120);
}

#[test]
fn limits_count_for_themselves() {
    let mut scene = Scene::new(&[terms(100, None), terms(10, None)]);
    for limit in [1, 2, 3] {
        scene.drops(0, limit, ONE, 50);
    }
    // The third limit does not ban.
    scene.check(1_000, &[(2, ONE, 50, 1)]);
}

#[test]
fn drops_before_the_ban_came_into_force() {
    let mut scene = Scene::new(&[terms(100, None)]);
    scene.drops(0, 1, ONE, 100);
    scene.check(1_000, &[(1, ONE, 100, 1)]);
    scene.drops(1_001, 1, ONE, 5_000);
    scene.check(2_000, &[]);
    // The source is dropped in spite of its ban, so the ban must have been lifted.
    scene.drops(2_500, 1, ONE, 99);
    scene.check(3_000, &[]);
    scene.drops(3_500, 1, ONE, 1);
    scene.check(4_000, &[(1, ONE, 100, 1)]);
}

#[test]
fn a_poll_without_news_forgets_no_ban() {
    let mut scene = Scene::new(&[terms(100, None)]);
    scene.drops(0, 1, ONE, 100);
    scene.check(1_000, &[(1, ONE, 100, 1)]);
    scene.decider.nothing_new(ns(2_000));
    // So new drops do not count as before the ban.
    scene.drops(2_500, 1, ONE, 99);
    scene.check(3_000, &[]);
    scene.drops(3_500, 1, ONE, 1);
    scene.check(4_000, &[(1, ONE, 100, 1)]);
}

#[test]
fn sources_set_aside_are_not_found() {
    let mut scene = Scene::new(&[terms(100, None)]);
    scene.drops(0, 1, ONE, 100);
    let due = scene.decide(1_000);
    scene.decider.ignore(&due.offences[0], ns(5_000));
    for second in 2..6 {
        scene.drops(second * 1_000 - 1, 1, ONE, 100);
        scene.check(second * 1_000, &[]);
    }
    scene.drops(5_999, 1, ONE, 100);
    scene.check(6_000, &[(1, ONE, 100, 1)]);
}

/// If drops came at unknown times in half a minute, some ten seconds of it had a third at least.
#[test]
fn a_late_poll_counts_what_is_certain() {
    for (drops, expected) in [(299, None), (300, Some(100)), (900, Some(300))] {
        let mut scene = Scene::new(&[terms(100, None)]);
        scene.drops(1, 1, ONE, drops);
        let expected: Vec<_> = expected
            .map(|drops| (1, ONE, drops, 1))
            .into_iter()
            .collect();
        scene.check(30_000, &expected);
    }
    // If nothing was dropped meanwhile, the poll is not late.
    let mut scene = Scene::new(&[terms(100, None)]);
    scene.decider.nothing_new(ns(29_000));
    scene.drops(29_001, 1, ONE, 100);
    scene.check(30_000, &[(1, ONE, 100, 1)]);
}

#[test]
fn no_more_bans_than_the_allowance_has() {
    let mut scene = Scene::new(&[terms(10, None)]);
    let sources = BANS_PER_SECOND + 500;
    for source in 0..sources {
        let address = format!("10.0.{}.{}", source / 250, source % 250);
        // The first sources have the most drops.
        scene.drops(0, 1, &address, 10 + sources - source);
    }
    let due = scene.decide(1_000);
    assert_eq!(due.offences.len() as u64, BANS_PER_SECOND);
    assert_eq!(shown(&due.offences[0].prefix()), "10.0.0.0");
    assert_eq!(due.delayed.values().sum::<u64>(), 500);
    for offence in &due.offences {
        scene.decider.banned(offence, ns(60_000));
    }
    // Half a second is half the budget.
    let due = scene.decide(1_500);
    assert_eq!((due.offences.len(), due.delayed.len()), (500, 0));
    assert_eq!(shown(&due.offences[0].prefix()), "10.0.4.0");
}

#[test]
fn a_reload_goes_on_with_the_same_window() {
    let mut scene = Scene::new(&[terms(100, None)]);
    scene.drops(0, 1, ONE, 60);
    scene.check(1_000, &[]);
    scene
        .decider
        .adopt(&policy(&[terms(80, None), terms(5, None)]), ns(1_000));
    scene.drops(1_100, 1, ONE, 20);
    scene.check(2_000, &[(1, ONE, 80, 1)]);
    scene.drops(2_100, 1, OTHER, 79);
    scene.check(3_000, &[]);
    // With another window the counts start at 0.
    let shorter = AutomaticBan {
        within_ns: 5 * SECOND,
        ..terms(80, None)
    };
    scene.decider.adopt(&policy(&[shorter]), ns(3_000));
    scene.drops(3_100, 1, OTHER, 79);
    scene.check(4_000, &[]);
    scene.drops(4_100, 1, OTHER, 80);
    scene.check(5_000, &[(1, OTHER, 80, 1)]);
}

#[test]
fn drops_count_from_the_first_ban_that_is_configured() {
    let mut scene = Scene::new(&[]);
    scene.drops(0, 1, ONE, 100);
    scene.drops(500, 1, OTHER, 1);
    scene
        .decider
        .adopt(&policy(&[terms(100, None)]), ns(20_000));
    scene.drops(20_500, 1, OTHER, 99);
    scene.check(21_000, &[]);
    scene.drops(21_500, 1, "192.0.2.3", 100);
    scene.drops(21_500, 1, OTHER, 100);
    scene.check(22_000, &[(1, OTHER, 100, 1), (1, "192.0.2.3", 100, 1)]);
}

#[test]
fn limits_that_do_not_enforce_ban_nobody() {
    for mode in [Mode::Observe, Mode::Off] {
        let mut policy = policy(&[terms(1, None)]);
        policy.limits[0].mode = mode;
        let mut decider = Decider::default();
        decider.adopt(&policy, 0);
        assert_eq!(decider.interval(), None);
    }
}

#[test]
fn polls_come_ten_times_in_the_shortest_window() {
    let check = |windows_ms: &[u64], interval_ms: u128| {
        let bans = windows_ms.iter().map(|within_ms| AutomaticBan {
            within_ns: within_ms * MS,
            ..terms(1, None)
        });
        let mut decider = Decider::default();
        decider.adopt(&policy(&bans.collect::<Vec<_>>()), 0);
        let interval = decider.interval().map(|interval| interval.as_millis());
        assert_eq!(interval, Some(interval_ms));
    };
    check(&[1_000], 100);
    check(&[10_000, 5_000], 500);
    check(&[60_000, 3_600_000], 1_000);
}

#[test]
fn reasons() {
    let mut scene = Scene::new(&[terms(1_000, Some(2))]);
    scene.drops(0, 1, ONE, 1_234);
    scene.drops(0, 1, "2001:db8:1::1", 600);
    scene.drops(0, 1, "2001:db8:1::2", 600);
    for network in 0..2 {
        for host in 0..3 {
            scene.drops(0, 1, &format!("2001:db8:2:{network}::{host}"), 500);
        }
    }
    let due = scene.decide(1_000);
    let terms = terms(1_000, Some(2));
    let reasons: Vec<_> = due.offences.iter().map(|one| one.reason(&terms)).collect();
    assert_eq!(
        reasons,
        [
            "3 000 drops of 2 /64s in 10s",
            "1 234 drops in 10s",
            "1 200 drops of 2 addresses in 10s",
        ]
    );
}

/// Memory is bounded for any number of forged sources.
#[test]
fn no_more_are_ignored_than_there_is_room_for() {
    let mut scene = Scene::new(&[terms(100, Some(2))]);
    for number in 0..u64::try_from(MOST_IGNORED).unwrap() + 1_000 {
        let address = Address::v6(((0x2001_0db8_u64 << 32) | number).to_be_bytes(), [0; 8]);
        let offence = |length| Offence {
            subject: Subject {
                limit: 1,
                prefix: BanKey::new(&address, length),
            },
            drops: 100,
            members: 1,
        };
        scene.decider.ignore(&offence(128), ns(5_000));
        scene.decider.refused(&offence(64), ns(5_000));
    }
    assert_eq!(scene.decider.ignored.len(), MOST_IGNORED);
    assert_eq!(scene.decider.ungrouped.len(), MOST_IGNORED);
    // The ignored sources expire; then there is room again.
    scene.decide(6_000);
    scene.decide(7_000);
    assert!(scene.decider.ignored.is_empty() && scene.decider.ungrouped.is_empty());
}

#[test]
fn deferred_offences_are_found_again() {
    let mut scene = Scene::new(&[terms(100, None)]);
    scene.drops(0, 1, ONE, 100);
    assert_eq!(scene.decide(1_000).offences.len(), 1);
    assert!(!scene.decider.is_unfinished());
    scene.decider.defer();
    assert!(scene.decider.is_unfinished());
    scene.check(2_000, &[(1, ONE, 100, 1)]);
}

/// A source that is busy in a sieve has used up no budget, however much the sieve drops.
#[test]
fn what_sieves_drop_bans_nobody() {
    let mut scene = Scene::new(&[terms(1_000, Some(2))]);
    let by = |by| {
        let key = OffenderKey::new(LimitId(1), by, &ONE.parse::<IpAddr>().unwrap().into());
        let offender = Offender {
            drops: 600,
            first_drop_ns: ns(100),
            last_drop_ns: ns(100),
        };
        (key, offender)
    };
    let both = [by(Dropper::Budget), by(Dropper::Sieve), by(Dropper::Sieve)];
    assert!(scene.decide_at(1_000, both).offences.is_empty());
    // As many drops by the limit itself do get it banned.
    let more = (
        by(Dropper::Budget).0,
        Offender {
            drops: 1_000,
            ..both[0].1
        },
    );
    assert_eq!(scene.decide_at(2_000, [more, both[1]]).offences.len(), 1);
}
