//! The packets that limits send back, and their budget.

use limiter_common::answer::Answer;
use limiter_policy::policy::{AnswerRates, Deny};

use crate::harness::{LIMIT, check, rate, read};

const SECOND_NS: u64 = 1_000_000_000;

/// A limit with its fields in one line, the third.
fn own(fields: &str) -> String {
    format!(
        "limits:\n  Own: {{id: total, cost: packets, burst: 9, count: 9, period: 1s,\n    {fields}}}\n"
    )
}

#[test]
fn denials() {
    let read = |fields: &str| read(&own(fields)).limits[0].deny;
    assert_eq!(read("deny: drop"), None);
    assert_eq!(read("deny: {unknown: drop}"), None);
    for answer in [
        Answer::Truncate,
        Answer::Reset,
        Answer::Prohibited,
        Answer::SynCookie,
    ] {
        let deny = Deny::everybody(answer);
        assert_eq!(read(&format!("deny: {}", answer.name())), Some(deny));
    }
    let deny = Deny {
        unknown: Some(Answer::Truncate),
        retried: Some(Answer::Drop),
        slip: 2,
        ..Deny::everybody(Answer::Reset)
    };
    assert_eq!(
        read("deny: {unknown: truncate, retried: drop, else: reset}, slip: 2"),
        Some(deny)
    );
    assert_eq!(read(&format!("deny: {deny}")), Some(deny));
}

#[test]
fn wrong_denials() {
    let check = |fields: &str, expected: &[&str]| check(&own(fields), expected);
    let expected = "expected 'drop', 'truncate', 'reset', 'prohibited', 'syn-cookie', or a map, such \
                    as {unknown: truncate, else: drop}";
    check(
        "deny: rest",
        &["3:11: unknown answer 'rest', did you mean 'reset'?"],
    );
    check(
        "deny: [reset]",
        &[&format!("3:11: {expected}, found a list")],
    );
    check("deny: {}", &[&format!("3:11: 'deny' is empty: {expected}")]);
    check(
        "deny: {unknwon: reset}",
        &["3:12: unknown field 'unknwon', did you mean 'unknown'?"],
    );
    check(
        "deny: {proven: reset}, match: {standing: [unknown]}",
        &["3:12: the limit's 'match' counts no proven sources"],
    );
    check(
        "deny: truncate, slip: 11",
        &["3:27: invalid slip '11', must be from 1 to 10"],
    );
    let slip = "'slip' has no effect without 'deny: truncate'";
    check("slip: 2", &[&format!("3:5: {slip}")]);
    check("deny: reset, slip: 2", &[&format!("3:18: {slip}")]);
    let udp = "no packet gets 'truncate': it answers DNS queries over UDP, and the limit counts no \
               udp";
    let tcp = "no packet gets 'reset': it answers TCP segments, and the limit counts no tcp but \
               resets";
    let all = "no packet gets 'prohibited': it answers tcp, udp and pings, of which the limit counts \
               none";
    let syn = "no packet gets 'syn-cookie': it answers a SYN of TCP, and the limit counts none";
    for (answer, matching, why) in [
        ("truncate", "protocol: tcp", udp),
        ("truncate", "tcp-flags: syn", udp),
        ("reset", "protocol: udp", tcp),
        ("reset", "tcp-flags: rst", tcp),
        ("prohibited", "protocol: 132", all),
        ("prohibited", "icmp-type: echo-reply", all),
        ("prohibited", "icmp-type: [128, 1], protocol: icmp", all),
        ("truncate", "icmp-type: echo-request", udp),
        ("syn-cookie", "protocol: udp", syn),
        ("syn-cookie", "tcp-flags: '!syn'", syn),
        ("syn-cookie", "tcp-flags: 'syn,ack'", syn),
    ] {
        check(
            &format!("deny: {answer}, match: {{{matching}}}"),
            &[&format!("3:11: {why}")],
        );
    }
    for matching in [
        "protocol: [132, udp]",
        "protocol: icmp",
        "icmp-type: [redirect, echo-request]",
        "icmp-type: 128, protocol: icmpv6",
    ] {
        check(&format!("deny: prohibited, match: {{{matching}}}"), &[]);
    }
    check("deny: syn-cookie, match: {tcp-flags: 'syn,!ack'}", &[]);
}

#[test]
fn rates_of_answers() {
    assert_eq!(read(LIMIT).answers, None);
    let answers = |text: &str| read(&format!("{LIMIT}answers: {text}\n")).answers.unwrap();
    let defaults = AnswerRates::default();
    assert_eq!(
        answers("{total: {burst: 7, count: 8, period: 9s}}"),
        AnswerRates {
            total: rate(7, 8, 9 * SECOND_NS),
            ..defaults
        }
    );
    assert_eq!(answers(&defaults.to_string()), defaults);
    check(
        &format!("{LIMIT}answers: {{total: {{rate: 1/second; 2/minute}}}}\n"),
        &["2:11: 'total' has one rate, not several"],
    );
    check(
        &format!("{LIMIT}answers: {{totals: {{}}}}\n"),
        &["2:11: unknown field 'totals', did you mean 'total'?"],
    );
}

/// The answers' buckets take three of the limits' slots.
#[test]
fn limits_beside_answers() {
    let limits = |number: usize| {
        let one = "id: total, cost: packets, burst: 1, count: 1, period: 1s, deny: reset";
        let lines = (0..number).map(|at| format!("  Own{at:02}: {{{one}}}\n"));
        format!("limits:\n{}", lines.collect::<String>())
    };
    check(&limits(61), &[]);
    check(
        &limits(62),
        &["63:3: too many limits, the maximum is 61 beside a 'deny', which takes three"],
    );
}
