//! The section `standing`.

use limiter_policy::policy::{Proof, Retry, StandingSettings, Visits};

use super::total;
use crate::harness::{LIMIT, SECOND, check, read};

const DAY: u64 = 86_400 * SECOND;

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
        "standing:\n  capacity: 4096\n  ipv6-prefix: 56\n  remember: 1.5d\n  fresh-for: 2d\n  \
         visits: {{count: 15, apart: 2s}}\n  retry: {{after: 50ms, within: 12s}}\n  \
         proven-by: [list, handshake]\n  proven: [office, partners]\n\
         lists: [{{name: office, cidr: 192.0.2.0/24}}, {{name: partners, cidr: 198.51.100.7}}]\n{LIMIT}"
    ));
    let expected = StandingSettings {
        capacity: 4_096,
        ipv6_prefix: 56,
        remember_ns: DAY * 3 / 2,
        fresh_for_ns: 2 * DAY,
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
    let settings = "{capacity: 1024, ipv6-prefix: 16, remember: 1m, fresh-for: 1m, visits: {count: 1, apart: 2s}, \
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
        "{fresh-for: 59s}",
        &["1:23: invalid fresh-for '59s', must be from 1m to 8760h"],
    );
    check(
        "{remember: 2y}",
        &[
            "1:22: invalid remember '2y', unknown unit 'y', must be one of ns, us, ms, s, m, h, d, \
             w",
        ],
    );
    check(
        "{fresh-for: 2}",
        &[
            "1:23: invalid fresh-for '2', its unit is missing: ns, us, ms, s, m, h, d or w, such as '2s'",
        ],
    );
    check(
        "[handshake]",
        &[
            "1:11: expected a map with capacity, ipv6-prefix, remember, fresh-for, visits, retry, \
           proven-by, proven, found a list",
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
