//! Matches and bans by standing.

use limiter_common::standing::Standing;

use super::total;
use crate::harness::{check, read};

#[test]
fn matches_by_standing() {
    let counted = |standing: &str| {
        let policy = read(&total(&format!("match: {{standing: {standing}}}")));
        assert!(policy.uses_standing());
        policy.limits[0].matching.standing.clone()
    };
    assert_eq!(
        counted("[unknown, retried]"),
        [Standing::Retried, Standing::Unknown]
    );
    assert_eq!(counted("proven"), [Standing::Proven]);
    let check = |standing: &str, expected: &[&str]| {
        check(
            &total(&format!("match: {{standing: {standing}}}")),
            expected,
        );
    };
    check(
        "[unknow]",
        &["3:24: unknown standing 'unknow', did you mean 'unknown'?"],
    );
    check(
        "[fresh, fresh]",
        &["3:31: duplicate standing 'fresh', first at 3:24"],
    );
    check("[]", &["3:23: no standings: name at least one"]);
    check(
        "[proven, familiar, fresh, retried, unknown]",
        &["3:23: every source has one of these: leave 'standing' out"],
    );
}

#[test]
fn bans_of_proven_sources_alone() {
    let limited = |only: &str| {
        format!(
            "limits:\n  PacketsPerIPAddress: {{burst: 5, count: 5, period: 1s,\n    \
             ban: {{only: {only}, after: 9, within: 10s, for: 10m}}}}\n"
        )
    };
    let policy = read(&limited("proven"));
    assert!(policy.uses_standing());
    let ban = policy.limits[0].ban.unwrap();
    assert_eq!(
        ban.to_string(),
        "{after: 9 drops, within: 10s, for: 10m, at-most: 24h, escalate: 1, only: proven}"
    );
    let own = |standing: &str| {
        format!(
            "limits:\n  Own: {{id: ipAddress, cost: packets, burst: 5, count: 5, period: 1s,\n    \
             ban: {{only: proven, after: 9, within: 10s, for: 10m}}, match: {{standing: {standing}}}}}\n"
        )
    };
    check(&own("[fresh, unknown]"), &[]);
    check(
        &own("[retried, unknown]"),
        &["3:5: 'only: proven' bans nobody: 'match' counts no proven or fresh sources"],
    );
    check(
        &limited("unknown"),
        &["3:17: unknown only 'unknown', must be one of proven"],
    );
}
