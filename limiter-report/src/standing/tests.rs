use super::*;
use limiter_common::counters::{LimitTraffic, Traffic};
use limiter_protocol::{ReserveExplanation, StandingTraffic, counted_standings};

use limiter_protocol::testing;

const SECOND_NS: u64 = 1_000_000_000;

/// The standing of an unknown source that came once.
fn unknown() -> StandingExplanation {
    StandingExplanation {
        source: "192.0.2.7/32".parse().unwrap(),
        standing: Standing::Unknown,
        why: StandingReason::Visits,
        fresh: false,
        visits: 1,
        gained_ago_ns: None,
        ends_in_ns: None,
        last_visit_ago_ns: Some(5 * SECOND_NS),
        shortage: None,
    }
}

#[track_caller]
fn check(standing: &StandingExplanation, expected: &str) {
    assert_eq!(standing_line(standing), expected);
}

#[test]
fn why_a_source_has_its_standing() {
    check(
        &unknown(),
        "192.0.2.7 is unknown: it came on 1 occasion so far, last seen 5 s ago",
    );
    check(
        &StandingExplanation {
            why: StandingReason::Nothing,
            last_visit_ago_ns: None,
            ..unknown()
        },
        "192.0.2.7 is unknown: nothing is known of it",
    );
    check(
        &StandingExplanation {
            source: "2001:db8::/64".parse().unwrap(),
            standing: Standing::Familiar,
            visits: 3,
            gained_ago_ns: Some(60 * SECOND_NS),
            ..unknown()
        },
        "2001:db8::/64 is familiar: it came on 3 occasions, gained 1 min ago, last seen 5 s ago",
    );
    check(
        &StandingExplanation {
            standing: Standing::Fresh,
            why: StandingReason::Handshake,
            fresh: true,
            gained_ago_ns: Some(9 * SECOND_NS),
            ..unknown()
        },
        "192.0.2.7 is fresh: it completed a TCP handshake or sent a valid DNS cookie, during a \
         shortage or shortly before it, gained 9 s ago, last seen 5 s ago",
    );
    check(
        &StandingExplanation {
            standing: Standing::Proven,
            why: StandingReason::Trusted,
            ends_in_ns: Some(86_400 * SECOND_NS),
            ..unknown()
        },
        "192.0.2.7 is proven: an operator trusts it, last seen 5 s ago, for 1 day more",
    );
    check(
        &StandingExplanation {
            standing: Standing::Proven,
            why: StandingReason::List,
            last_visit_ago_ns: None,
            ..unknown()
        },
        "192.0.2.7 is proven: it is on a list of proven sources",
    );
}

#[test]
fn what_a_standing_changes() {
    let mut explanation = testing::explanation("192.0.2.7");
    let of_limit = |explanation: &Explanation| {
        let lines = explanation_lines(explanation);
        lines.into_iter().skip(1).collect::<Vec<_>>()
    };
    assert!(explanation_lines(&explanation).is_empty());
    explanation.standing = Some(unknown());
    assert!(of_limit(&explanation).is_empty());
    explanation.limits[0].reserve = Some(ReserveExplanation {
        tokens: 1_000,
        passes: false,
        retry_in_ns: SECOND_NS,
    });
    explanation.limits[0].remaining = 999;
    assert_eq!(
        of_limit(&explanation),
        [
            "PacketsPerIPAddress: unknown sources must leave 1 000, 999 are left: a packet passes in 1 s"
        ]
    );
    explanation.limits[0].reserve = Some(ReserveExplanation {
        tokens: 0,
        passes: true,
        retry_in_ns: 0,
    });
    assert_eq!(
        of_limit(&explanation),
        [
            "PacketsPerIPAddress: unknown sources may use the whole bucket, 999 are left: a packet \
             passes now"
        ]
    );
    explanation.limits[0].other_standing = true;
    assert_eq!(
        of_limit(&explanation),
        ["PacketsPerIPAddress does not count unknown sources"]
    );
}

#[test]
fn a_table_for_80_columns() {
    let traffic = |passed| LimitTraffic {
        passed: Traffic {
            packets: passed,
            bytes: 64 * passed,
        },
        ..LimitTraffic::default()
    };
    let of_each = counted_standings()
        .map(|standing| StandingTraffic::new(standing, &traffic(999_999_999_999)));
    let mut status = StandingStatus::default();
    let of_each: Vec<_> = of_each.collect();
    status
        .limits
        .insert("PacketsPerIPAddress".to_owned(), of_each);
    let table = traffic_table(&status);
    assert!(!table.contains("would drop"));
    assert_eq!(table.lines().count(), 7);
    status.limits.values_mut().flatten().for_each(|traffic| {
        traffic.would_drop_packets = 999_999_999_999;
        traffic.dropped_packets = 999_999_999_999;
    });
    let table = traffic_table(&status);
    assert!(table.contains("would drop"));
    assert!(table.lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn since_when_there_is_a_shortage() {
    assert!(shortage_line(None).starts_with("no shortage"));
    let shortage = ShortageStatus {
        began_ago_ns: 120 * SECOND_NS,
        last_refused_ago_ns: SECOND_NS,
    };
    assert_eq!(
        shortage_line(Some(&shortage)),
        "SHORTAGE for 2 min: packets are refused for reserves, last 1 s ago"
    );
}
