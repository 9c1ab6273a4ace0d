//! The section `standing`, and what limits make of the standing of sources.

use limiter_common::standing::Standing;
use limiter_policy::policy::{Policy, Proof, Reserve, Reserved, Retry, StandingSettings, Visits};

use super::harness::{LIMIT, SECOND, check, load};

const DAY: u64 = 86_400 * SECOND;

#[track_caller]
#[expect(clippy::unwrap_used, reason = "the tests' files are right")]
fn read(yaml: &str) -> Policy {
    load(&[("limiter.yaml", yaml.as_bytes())]).unwrap().policy
}

/// Returns a configuration of one limit on all sources together.
fn total(more: &str) -> String {
    format!(
        "limits:\n  All: {{id: total, cost: packets, burst: 2000, count: 50, period: 1s,\n    {more}}}\n"
    )
}

#[test]
fn what_is_left_out_has_defaults() {
    let policy = read(&format!("standing: {{}}\n{LIMIT}"));
    assert_eq!(policy.standing, Some(StandingSettings::default()));
    assert!(!policy.uses_standing());
    assert_eq!(read(LIMIT).standing, None);
    let used = read(&total("reserve: {unknown: 50%}"));
    assert_eq!(used.standing, None);
    assert_eq!(used.standing_in_use(), Some(StandingSettings::default()));
}

#[test]
fn every_field() {
    let policy = read(&format!(
        "standing:\n  capacity: 4096\n  ipv6-prefix: 56\n  remember: 1.5d\n  \
         visits: {{count: 15, apart: 2s}}\n  retry: {{after: 50ms, within: 12s}}\n  \
         proven-by: [list, handshake]\n  proven: [office, partners]\n\
         lists: [{{name: office, cidr: 192.0.2.0/24}}, {{name: partners, cidr: 198.51.100.7}}]\n{LIMIT}"
    ));
    let expected = StandingSettings {
        capacity: 4_096,
        ipv6_prefix: 56,
        remember_ns: DAY * 3 / 2,
        visits: Some(Visits {
            count: 15,
            apart_ns: 2 * SECOND,
        }),
        retry: Retry {
            after_ns: SECOND / 20,
            within_ns: 12 * SECOND,
        },
        proven_by: vec![Proof::Handshake, Proof::List],
        proven: vec!["office".to_owned(), "partners".to_owned()],
    };
    assert_eq!(policy.standing, Some(expected));
    let strict = read(&format!(
        "standing: {{visits: off, proven-by: handshake, retry: {{within: 1s}}}}\n{LIMIT}"
    ));
    let strict = strict.standing.unwrap();
    assert_eq!(strict.visits, None);
    assert_eq!(strict.proven_by, [Proof::Handshake]);
    assert_eq!(
        (strict.retry.after_ns, strict.retry.within_ns),
        (SECOND / 5, SECOND)
    );
}

#[test]
fn what_is_shown_can_be_read_again() {
    let settings = "{capacity: 1024, ipv6-prefix: 16, remember: 1m, visits: {count: 1, apart: 2s}, \
                    retry: {after: 50ms, within: 51ms}, proven-by: [list]}";
    let shown = |settings: &str| {
        read(&format!("standing: {settings}\n{LIMIT}"))
            .standing
            .unwrap()
    };
    assert_eq!(shown(settings).to_string(), settings);
    assert_eq!(
        shown(&StandingSettings::default().to_string()),
        StandingSettings::default()
    );
}

#[test]
fn wrong_numbers() {
    let check = |standing: &str, expected: &[&str]| {
        check(&format!("standing: {standing}\n{LIMIT}"), expected);
    };
    for capacity in ["1023", "16777217", "0"] {
        check(
            &format!("{{capacity: {capacity}}}"),
            &[&format!(
                "1:22: invalid capacity '{capacity}', must be from 1024 to 16777216"
            )],
        );
    }
    check("{capacity: 16777216}", &[]);
    check(
        "{ipv6-prefix: 65}",
        &["1:25: invalid ipv6-prefix '65', must be from 16 to 64"],
    );
    check(
        "{ipv6-prefix: 15}",
        &["1:25: invalid ipv6-prefix '15', must be from 16 to 64"],
    );
    check(
        "{visits: {count: 0}}",
        &["1:28: invalid count '0', must be from 1 to 15"],
    );
    check(
        "{visits: {count: 16, apart: 1999ms}}",
        &[
            "1:28: invalid count '16', must be from 1 to 15",
            "1:39: invalid apart '1999ms', must be from 2s to 8760h",
        ],
    );
    check(
        "{visits: 3}",
        &["1:20: expected a map, such as {count: 3, apart: 1m}, or 'off', found the number '3'"],
    );
    check(
        "{remember: 59s}",
        &["1:22: invalid remember '59s', must be from 1m to 8760h"],
    );
    check(
        "{remember: 366d}",
        &["1:22: invalid remember '366d', must be from 1m to 8760h"],
    );
    check(
        "{remember: 2w}",
        &[
            "1:22: invalid remember '2w', unknown unit 'w', must be one of ns, us, ms, s, m, h (a \
           day is 24h)",
        ],
    );
    check(
        "[handshake]",
        &[
            "1:11: expected a map with capacity, ipv6-prefix, remember, visits, retry, proven-by, \
           proven, found a list",
        ],
    );
    check(
        "{capactiy: 2048}",
        &["1:12: unknown field 'capactiy', did you mean 'capacity'?"],
    );
}

#[test]
fn times_that_contradict_each_other() {
    let check = |standing: &str, expected: &[&str]| {
        check(&format!("standing: {standing}\n{LIMIT}"), expected);
    };
    check(
        "{retry: {within: 12001ms}}",
        &["1:28: invalid within '12001ms', must be from 50ms to 12s"],
    );
    check(
        "{retry: {after: 49ms}}",
        &["1:27: invalid after '49ms', must be from 50ms to 12s"],
    );
    check(
        "{retry: {after: 10s}}",
        &["1:27: invalid after '10s', must be below 'within', 10s"],
    );
    check(
        "{retry: {within: 200ms}}",
        &["1:28: invalid within '200ms', must be above 'after', 200ms"],
    );
    check(
        "{retry: {after: 3s, within: 2s}}",
        &["1:27: invalid after '3s', must be below 'within', 2s"],
    );
    check(
        "{remember: 1h, visits: {apart: 60m}}",
        &[
            "1:42: invalid apart '1h', must be below 'remember', 1h: a source would be forgotten \
           before its second visit",
        ],
    );
    check(
        "{remember: 1m}",
        &[
            "1:22: invalid remember '1m', must be above 'apart' of 'visits', 1m: a source would be \
           forgotten before its second visit",
        ],
    );
    check("{remember: 1m, visits: off}", &[]);
}

#[test]
fn wrong_proofs() {
    check(
        &format!("standing: {{proven-by: [handshak]}}\n{LIMIT}"),
        &["1:24: unknown proof 'handshak', did you mean 'handshake'?"],
    );
    check(
        &format!("standing: {{proven-by: [list, list]}}\n{LIMIT}"),
        &["1:30: duplicate proof 'list', first at 1:24"],
    );
    check(
        &format!("standing: {{proven-by: []}}\n{LIMIT}"),
        &["1:23: no proofs: name at least one"],
    );
    check(
        &format!(
            "standing: {{proven: ofice}}\nlists: [{{name: office, cidr: 192.0.2.1}}]\n{LIMIT}"
        ),
        &["1:20: unknown list 'ofice', did you mean 'office'?"],
    );
    check(
        &format!(
            "standing: {{proven: office, proven-by: handshake}}\n\
             lists: [{{name: office, cidr: 192.0.2.1}}]\n{LIMIT}"
        ),
        &["1:12: 'proven' has no effect: add 'list' to 'proven-by'"],
    );
}

#[test]
fn reserves() {
    let read = |reserve: &str| {
        let policy = read(&total(&format!("reserve: {reserve}")));
        policy.limits[0].reserve.unwrap()
    };
    let share = |text: &str| Reserved::Share(text.parse().unwrap());
    let whole = "{familiar: 10%, fresh: 20%, retried: 30%, unknown: 50%}";
    let expected = Reserve {
        familiar: share("10%"),
        fresh: share("20%"),
        retried: share("30%"),
        unknown: share("50%"),
    };
    assert_eq!(read(whole), expected);
    assert_eq!(expected.to_string(), whole);
    // A missing key takes the value of the next higher standing.
    let expected = Reserve {
        familiar: Reserved::NOTHING,
        fresh: Reserved::Tokens(500),
        retried: Reserved::Tokens(500),
        unknown: share("99.9%"),
    };
    assert_eq!(read("{familiar: 0%, fresh: 500, unknown: 99.9%}"), expected);
    assert_eq!(read(&expected.to_string()), expected);
}

#[test]
fn wrong_reserves() {
    let check = |reserve: &str, expected: &[&str]| {
        check(&total(&format!("reserve: {reserve}")), expected);
    };
    let map = "expected a map, such as {familiar: 10%, unknown: 50%}";
    check("50%", &[&format!("3:14: {map}, found the text '50%'")]);
    for nothing in ["{}", "{unknown: 0}", "{familiar: 0%, unknown: 0}"] {
        check(
            nothing,
            &[&format!("3:5: 'reserve' reserves nothing: {map}")],
        );
    }
    check(
        "{unknwon: 50%}",
        &["3:15: unknown field 'unknwon', did you mean 'unknown'?"],
    );
    check(
        "{proven: 10%, unknown: 50%}",
        &["3:15: 'proven' cannot be held back: proven sources may use all of a bucket"],
    );
    let expected = "expected a percentage of the burst, such as '10%', or tokens, such as 500";
    let percentage = "expected a percentage from '0%' to '100%', with at most four decimals, such as \
                      '0.5%'";
    let never = "must be below the burst of 2000: no packet of unknown sources could ever pass";
    for (unknown, why) in [
        ("half", expected),
        ("'500'", expected),
        ("101%", percentage),
        ("-1%", percentage),
        ("0.00001%", percentage),
        ("-1", "must be from 0 to 9223372036854775807"),
        ("1.5", "must be a whole number, in digits"),
        ("100%", never),
        // Rounded up, to all of the burst.
        ("99.99%", never),
        ("2000", never),
        ("2001", never),
    ] {
        let written = unknown.trim_matches('\'');
        check(
            &format!("{{unknown: {unknown}}}"),
            &[&format!("3:24: invalid unknown '{written}', {why}")],
        );
    }
    check(
        "{unknown: [1]}",
        &[&format!("3:24: {expected}, found a list")],
    );
    check("{unknown: 1999}", &[]);
    check(
        "{fresh: 20%, retried: 10%, unknown: 399}",
        &[
            "3:36: invalid retried '10%', must be at least that of fresh, 20%: a lower standing \
             leaves at least as much",
        ],
    );
    check(
        "{familiar: 500, unknown: 499}",
        &[
            "3:39: invalid unknown '499', must be at least that of retried, 500: a lower standing \
             leaves at least as much",
        ],
    );
    check("{familiar: 500, unknown: 25%}", &[]);
}

#[test]
fn reserves_of_other_limits() {
    let own = |fields: &str| format!("limits:\n  Own: {{id: ipAddress, {fields}}}\n");
    for (strategy, why) in [
        (
            "fixed-window",
            "its count comes back only when the window ends, and so would the reserve; use gcra",
        ),
        (
            "moving-window",
            "its tokens come back in the bursts in which they were taken; use gcra",
        ),
    ] {
        let yaml = own(&format!(
            "reserve: {{unknown: 50%}}, cost: packets, rate: 100/second, strategy: {strategy}"
        ));
        check(
            &yaml,
            &[&format!(
                "2:24: 'reserve' is not for strategy {strategy}: {why}"
            )],
        );
    }
    let bytes = |unknown: u64| {
        own(&format!(
            "reserve: {{unknown: {unknown}}}, cost: bytes, burst: 20000, count: 1, period: 1s"
        ))
    };
    check(&bytes(18_486), &[]);
    check(
        &bytes(18_487),
        &[
            "2:43: invalid unknown '18487', must leave at least 1514 bytes of the burst of 20000: a \
             full Ethernet frame of unknown sources could never pass",
        ],
    );
    // Each of several rates has a burst of its own.
    check(
        &own("reserve: {unknown: 30}, cost: packets, rate: 100/second; 30/minute"),
        &[
            "2:43: invalid unknown '30', must be below the burst of 30: no packet of unknown sources \
             could ever pass",
        ],
    );
}

#[test]
fn overrides_fit_the_reserve() {
    let yaml = |reserve: &str, burst: u64| {
        format!(
            "limits:\n  PacketsPerIPAddress: {{burst: 2000, count: 50, period: 1s, reserve: {reserve}}}\n\
             overrides:\n  - PacketsPerIPAddress: {{burst: {burst}, count: 5, period: 1s, ids: [192.0.2.1]}}\n"
        )
    };
    check(&yaml("{unknown: 50%}", 10), &[]);
    check(&yaml("{unknown: 500}", 501), &[]);
    check(
        &yaml("{unknown: 500}", 500),
        &[
            "4:5: the 'reserve' of PacketsPerIPAddress does not fit: unknown '500' must be below the \
             burst of 500: no packet of unknown sources could ever pass",
        ],
    );
    check(
        &yaml("{familiar: 100, unknown: 50%}", 150),
        &[
            "4:5: the 'reserve' of PacketsPerIPAddress does not fit: unknown '50%' must be at least \
             that of retried, 100: a lower standing leaves at least as much",
        ],
    );
    check(
        &format!(
            "{LIMIT}overrides:\n  'PacketsPerIPAddress:192.0.2.1': {{burst: 9, count: 9, period: 1s, \
             reserve: {{unknown: 1}}}}\n"
        ),
        &[
            "3:69: 'reserve' belongs to the limit: there, a percentage is of each override's own \
             burst",
        ],
    );
}

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
