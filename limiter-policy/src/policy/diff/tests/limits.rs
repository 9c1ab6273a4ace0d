//! Differences of limits, and the fate of their buckets.

use limiter_common::{limit::LimitId, strategy::Strategy};

use super::*;
use crate::policy::{BanMode, Escalation, TcpFlags};

#[test]
fn what_enforces_the_same_does_not_differ() {
    check(|_| {}, &[]);
    check(
        |policy| {
            // Another daemon may have interned the name under another id.
            policy.limits[0].id = LimitId(40);
            policy.limits[0].overrides[0].comment = Some("new".to_owned());
        },
        &[],
    );
}

#[test]
fn a_changed_rate_keeps_the_debt() {
    const KEPT: &str =
        "         buckets   stay; where a rate differs, as many tokens are owed as before";
    check(
        |policy| policy.limits[0].default = Some(rate(5)),
        &[
            "changed  limit Web",
            "         rate      {burst: 20, count: 10, period: 1500ms} → {burst: 5, count: 10, period: 1500ms}",
            KEPT,
        ],
    );
    check(
        |policy| policy.limits[0].default = None,
        &[
            "changed  limit Web",
            "         rate      {burst: 20, count: 10, period: 1500ms} → none",
            KEPT,
        ],
    );
    check(
        |policy| {
            policy.limits[0].overrides =
                vec![overridden("192.0.2.2", 3), overridden("2001:db8::/32", 4)];
        },
        &[
            "changed  limit Web",
            "         override  192.0.2.1      removed: {burst: 1, count: 10, period: 1500ms}",
            "         override  192.0.2.2      {burst: 2, count: 10, period: 1500ms} → {burst: 3, count: 10, period: 1500ms}",
            "         override  2001:db8::/32  added: {burst: 4, count: 10, period: 1500ms}",
            KEPT,
        ],
    );
}

#[test]
fn overrides_by_name_are_shown_like_others() {
    check(
        |policy| {
            policy.limits[0].overrides.extend([
                overridden("a.example", 3),
                overridden("192.0.2.2:a.example A", 4),
            ]);
        },
        &[
            "changed  limit Web",
            "         override  a.example              added: {burst: 3, count: 10, period: 1500ms}",
            "         override  192.0.2.2:a.example A  added: {burst: 4, count: 10, period: 1500ms}",
            "         buckets   stay; where a rate differs, as many tokens are owed as before",
        ],
    );
}

#[test]
fn what_is_owed_in_other_tokens_is_forgotten() {
    check(
        |policy| policy.limits[0].cost = Cost::NewConnections,
        &[
            "changed  limit Web",
            "         cost      packets → new-connections",
            "         buckets   begin full",
        ],
    );
    check(
        |policy| {
            policy.limits[0].id_format = IdFormat::Ipv4RangeCidr { prefix_length: 24 };
            policy.limits[0].default = Some(rate(5));
        },
        &[
            "changed  limit Web",
            "         id        ipAddress → ipv4RangeCIDR /24",
            "         rate      {burst: 20, count: 10, period: 1500ms} → {burst: 5, count: 10, period: 1500ms}",
            "         buckets   begin full",
        ],
    );
}

#[test]
fn another_strategy_begins_anew() {
    const ANEW: &str = "         buckets   begin anew: what the old strategy counted is forgotten";
    check(
        |policy| {
            policy.limits[0].strategy = Strategy::FixedWindow;
            policy.limits[0].default = Some(rate(10));
            policy.limits[0].overrides = vec![
                overridden("192.0.2.1", 1),
                overridden("192.0.2.2", 10),
                overridden("192.0.2.3", 10),
            ];
        },
        &[
            "changed  limit Web",
            "         strategy  gcra → fixed-window",
            "         rate      {burst: 20, count: 10, period: 1500ms} → {count: 10, period: 1500ms}",
            "         override  192.0.2.2  {burst: 2, count: 10, period: 1500ms} → {count: 10, period: 1500ms}",
            "         override  192.0.2.3  added: {count: 10, period: 1500ms}",
            ANEW,
        ],
    );
    let old = Policy::from(vec![limit("Web"), limit("Dns"), limit("Gone")]);
    let mut new = Policy::from(vec![limit("Web"), limit("Dns"), limit("New")]);
    new.limits[0].default = None;
    assert_eq!(discarded_state(&old, &new), DiscardedState::default());
    new.limits[0].strategy = Strategy::MovingWindow;
    new.limits[2].strategy = Strategy::MovingWindow;
    assert_eq!(discarded_state(&old, &new).limits, ["Web"]);
}

#[test]
fn other_packets_or_another_mode_leave_the_buckets() {
    check(
        |policy| {
            policy.limits[0].mode = Mode::Observe;
            policy.limits[0].matching.tcp_flags = Some(TcpFlags {
                set: TcpFlags::SYN,
                clear: 0,
            });
        },
        &[
            "changed  limit Web",
            "         match     all → flags syn",
            "         mode      enforce → observe",
            "         buckets   stay as they are",
        ],
    );
}

#[test]
fn a_ban_leaves_the_buckets() {
    let ban = AutomaticBan {
        after: 1_000,
        within_ns: 10_000_000_000,
        for_ns: 600_000_000_000,
        at_most_ns: 600_000_000_000,
        escalate: Escalation::NONE,
        range_after: None,
        site_after: None,
        only: None,
        mode: BanMode::Observe,
    };
    check(
        |policy| policy.limits[0].ban = Some(ban),
        &[
            "changed  limit Web",
            "         ban       none → {after: 1000 drops, within: 10s, for: 10m, at-most: 10m, \
             escalate: 1, range-after: off, mode: observe}",
            "         buckets   stay as they are",
        ],
    );
}

#[test]
fn a_limit_that_goes_may_come_back() {
    check(
        |policy| policy.limits[0].name = "Www".to_owned(),
        &[
            "removed  limit Web",
            "         buckets   are set aside, for when the limit comes back",
            "added    limit Www",
            "         id        ipAddress",
            "         cost      packets",
            "         match     all",
            "         rate      {burst: 20, count: 10, period: 1500ms}",
            "         mode      enforce",
            "         override  192.0.2.1  added: {burst: 1, count: 10, period: 1500ms}",
            "         override  192.0.2.2  added: {burst: 2, count: 10, period: 1500ms}",
            "         buckets   begin full, or as they were if the limit comes back",
        ],
    );
}

/// A shared bucket and each host's own buckets are different.
#[test]
fn a_shared_budget() {
    let alone = Policy::from(vec![limit("All")]);
    let among = |nodes| {
        let mut policy = alone.clone();
        policy.limits[0].fleet_nodes = Some(nodes);
        policy.limits[0].overrides.clear();
        policy
    };
    let mut alone = alone.clone();
    alone.limits[0].overrides.clear();
    let diff = &Diff::between(&alone, &among(2)).limits[0];
    assert_eq!(diff.parts, ["scope"]);
    assert_eq!(diff.buckets, BucketFate::Full);
    assert!(diff.to_string().contains("host → fleet"), "{diff}");
    let diff = &Diff::between(&among(2), &among(3)).limits[0];
    assert_eq!(diff.parts, ["nodes"]);
    assert_eq!(diff.buckets, BucketFate::DebtInTokens);
    assert!(diff.to_string().contains("2 → 3"), "{diff}");
}
