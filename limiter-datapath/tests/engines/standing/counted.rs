//! Lists take precedence over records; limits may count only sources of some standings.

use limiter_common::{
    limit::IdFormat,
    policy::{Class, DEFAULT_CLASS_V4},
    reason::Reason::{self, BlockedList, OverLimit, Unlimited, WithinLimits},
    standing::Standing,
};
use limiter_policy::policy::CompiledPolicy;

use super::{
    host::Host,
    scene::{BURST, SOURCES, all_and_each, limit, of_strangers, reserving},
};
use crate::engine::policy;

#[test]
fn a_list_proves_sources_without_a_look_up() {
    let mut tables = all_and_each();
    tables.classes[DEFAULT_CLASS_V4 as usize].listing |= Class::PROVEN;
    let host = Host::new(tables);
    let (passed, last) = host.exhaust("198.51.100.77", Standing::Proven);
    assert_eq!((passed, last.reason), (BURST, OverLimit));
    assert_eq!(host.standing().records().count(), 0);
    // The list does not cover the other family.
    let verdict = host.verdict(0, SOURCES[4]);
    assert_eq!(verdict.standing(), Some(Standing::Unknown));
}

/// Lists that exclude or block sources come before lists that prove them.
#[test]
fn a_proven_source_may_be_excluded_or_blocked() {
    for (listing, reason) in [
        (Class::EXCLUDED, Reason::Excluded),
        (Class::BLOCKED, BlockedList),
    ] {
        let mut tables = all_and_each();
        tables.classes[DEFAULT_CLASS_V4 as usize].listing = Class::PROVEN | listing;
        let verdict = Host::new(tables).verdict(0, "198.51.100.77");
        assert_eq!((verdict.reason, verdict.standing()), (reason, None));
    }
}

#[test]
fn a_limit_may_count_only_sources_of_some_standing() {
    let host = Host::new(of_strangers());
    for (standing, source) in Standing::ALL.into_iter().zip(SOURCES) {
        let verdict = host.verdict(0, host.set_standing(source, standing));
        let matched = match standing {
            Standing::Retried | Standing::Unknown => 0b11,
            _ => 0b01,
        };
        assert_eq!(
            (verdict.reason, verdict.matched),
            (WithinLimits, matched),
            "{standing:?}"
        );
    }
}

#[test]
fn a_source_that_no_limit_counts_is_unlimited() {
    let mut tables = reserving(&policy([limit(32, IdFormat::IpAddress)]), &[]);
    tables.features.of_standing[Standing::Proven as usize] = 0;
    let host = Host::new(tables);
    let source = host.set_standing(SOURCES[0], Standing::Proven);
    let verdict = host.verdict(0, source);
    assert_eq!((verdict.reason, verdict.matched), (Unlimited, 0));
    assert_eq!(verdict.standing(), Some(Standing::Proven));
    let verdict = host.verdict(0, SOURCES[4]);
    assert_eq!((verdict.reason, verdict.matched), (WithinLimits, 1));
}

/// A limit that does not count a source does not block it either.
#[test]
fn a_limit_blocks_only_sources_that_it_counts() {
    let mut tables = of_strangers();
    let listing = u32::try_from(tables.masks.len()).expect("a small table");
    tables.masks.push(0b10);
    tables.classes[DEFAULT_CLASS_V4 as usize].listing = listing;
    let host = Host::new(tables);
    let known = host.verdict(0, host.set_standing(SOURCES[0], Standing::Proven));
    assert_eq!(known.reason, WithinLimits);
    let stranger = host.verdict(0, "198.51.100.200");
    assert_eq!(
        (stranger.reason, stranger.refused_by()),
        (BlockedList, Some(1))
    );
    assert_eq!(stranger.standing(), Some(Standing::Unknown));
}

/// The verdicts of such a policy name no standing.
#[test]
fn a_policy_without_standing_looks_nobody_up() {
    let tables =
        CompiledPolicy::new(&policy([limit(32, IdFormat::Total)]), 1).expect("it compiles");
    let verdict = Host::new(tables).verdict(0, SOURCES[4]);
    assert_eq!((verdict.reason, verdict.standing()), (WithinLimits, None));
}
