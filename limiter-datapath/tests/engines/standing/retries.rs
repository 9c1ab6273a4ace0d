//! Sources that come again after a refusal.

use limiter_common::{
    limit::IdFormat,
    reason::Reason::{Reserved, WithinLimits},
    standing::Standing,
};
use limiter_policy::policy::{Limit, Mode};

use super::{
    host::Host,
    scene::{BURST, SECOND, SOURCES, TOKENS, all_and_each, limit, of_strangers, reserving},
};
use crate::engine::policy;

const NEWCOMER: &str = "203.0.113.1";

/// A host with unknown sources that have spent all their tokens.
fn short(host: Host) -> Host {
    let (passed, _) = host.exhaust(SOURCES[4], Standing::Unknown);
    assert_eq!(passed, BURST - TOKENS[4]);
    host
}

#[test]
fn a_source_that_comes_again_in_time_is_retried() {
    let host = short(Host::new(all_and_each()));
    let check = |at, reason, standing| {
        let verdict = host.verdict(at, NEWCOMER);
        assert_eq!(
            (verdict.reason, verdict.standing()),
            (reason, Some(standing)),
            "at {at}"
        );
    };
    check(0, Reserved, Standing::Unknown);
    check(SECOND / 10, Reserved, Standing::Unknown);
    check(SECOND, WithinLimits, Standing::Retried);
    // It stays so for ten minutes.
    check(2 * SECOND, WithinLimits, Standing::Retried);
    check(599 * SECOND, WithinLimits, Standing::Retried);
    // The times of first tries repeat after 12.8 s: by them, this one is 11 s old.
    check(612_600_000_000, Reserved, Standing::Unknown);
}

#[test]
fn a_retry_has_a_reserve_of_its_own() {
    let host = short(Host::new(all_and_each()));
    assert_eq!(host.verdict(0, NEWCOMER).reason, Reserved);
    let mut passed = 0;
    let last = loop {
        let verdict = host.verdict(SECOND, NEWCOMER);
        assert_eq!(verdict.standing(), Some(Standing::Retried));
        if verdict.reason != WithinLimits {
            break verdict;
        }
        passed += 1;
    };
    assert_eq!(passed, TOKENS[4] - TOKENS[3]);
    assert_eq!((last.reason, last.refused_by()), (Reserved, Some(0)));
}

#[test]
fn a_source_that_comes_again_too_late_begins_anew() {
    let host = short(Host::new(all_and_each()));
    for at in [0, 11 * SECOND, 22 * SECOND] {
        let verdict = host.verdict(at, NEWCOMER);
        assert_eq!(
            (verdict.reason, verdict.standing()),
            (Reserved, Some(Standing::Unknown))
        );
    }
    assert_eq!(host.verdict(23 * SECOND, NEWCOMER).reason, WithinLimits);
}

/// Another limit may count the source then.
#[test]
fn the_limits_that_count_a_retry_are_those_of_its_standing() {
    let mut tables = of_strangers();
    tables.features.of_standing[Standing::Retried as usize] = !0b10;
    let host = short(Host::new(tables));
    let first = host.verdict(0, NEWCOMER);
    assert_eq!((first.reason, first.matched), (Reserved, 0b11));
    let second = host.verdict(SECOND, NEWCOMER);
    assert_eq!((second.reason, second.matched), (WithinLimits, 0b01));
}

/// A limit on retried sources alone may refuse a packet that the limit on all sources lets pass.
#[test]
fn a_retry_meets_the_reserves_of_the_limits_that_count_it() {
    let limits = [limit(32, IdFormat::Total), limit(33, IdFormat::Total)];
    let mut tables = reserving(&policy(limits), &[(0, TOKENS), (1, [0, 0, 0, BURST, 0])]);
    for of_standing in &mut tables.features.of_standing {
        *of_standing = !0b10;
    }
    tables.features.of_standing[Standing::Retried as usize] = !0;
    let host = short(Host::new(tables));
    assert_eq!(host.verdict(0, NEWCOMER).refused_by(), Some(0));
    let second = host.verdict(SECOND, NEWCOMER);
    assert_eq!((second.reason, second.refused_by()), (Reserved, Some(1)));
    assert_eq!(
        (second.matched, second.standing()),
        (0b11, Some(Standing::Retried))
    );
}

/// An observing limit also reports its decisions on retries.
#[test]
fn a_limit_that_observes_knows_retries() {
    let limits = [
        Limit {
            mode: Mode::Observe,
            ..limit(32, IdFormat::Total)
        },
        limit(33, IdFormat::IpAddress),
    ];
    let host = Host::new(reserving(&policy(limits), &[(0, TOKENS)]));
    for _ in 0..BURST - TOKENS[4] {
        assert_eq!(host.verdict(0, SOURCES[4]).would_drop, 0);
    }
    let first = host.verdict(0, NEWCOMER);
    assert_eq!(
        (first.would_drop, first.standing()),
        (1, Some(Standing::Unknown))
    );
    let second = host.verdict(SECOND, NEWCOMER);
    assert_eq!(
        (second.would_drop, second.standing()),
        (0, Some(Standing::Retried))
    );
    assert_eq!((first.reason, second.reason), (WithinLimits, WithinLimits));
}

/// Without a refusal no source is recorded as unknown.
#[test]
fn a_packet_that_passes_is_no_first_try() {
    let host = Host::new(all_and_each());
    assert_eq!(host.verdict(0, NEWCOMER).reason, WithinLimits);
    assert_eq!(
        host.exhaust(SOURCES[4], Standing::Unknown).0,
        BURST - TOKENS[4] - 1
    );
    let verdict = host.verdict(SECOND, NEWCOMER);
    assert_eq!(
        (verdict.reason, verdict.standing()),
        (Reserved, Some(Standing::Unknown))
    );
}
