//! Limits on connections open at once.

use limiter_common::limit::Cost;
use limiter_policy::policy::Rate;

use crate::{
    harness::{check, overridden, read},
    shown::check_text,
};

const WEB: &str = "id: ipAddress, cost: connections";

#[test]
fn limits() {
    let policy = read(&format!(
        "limits: {{Web: {{{WEB}, limit: 50, match: {{protocol: tcp, destination-port: 443}}}}}}\n\
         overrides: {{Web:192.0.2.7: {{limit: 500}}}}\n"
    ));
    let web = &policy.limits[0];
    assert_eq!(web.cost, Cost::Connections);
    assert_eq!(web.default, Some(Rate::of_connections(50)));
    let other = overridden("192.0.2.7/32", Rate::of_connections(500), None);
    assert_eq!(web.overrides, [other]);
    // As a list, and without a default.
    let policy = read(&format!(
        "limits: {{Web: {{{WEB}}}}}\noverrides: [{{Web: {{limit: 7, ids: [192.0.2.0/24]}}}}]\n"
    ));
    assert_eq!(policy.limits[0].default, None);
    assert_eq!(policy.limits[0].overrides[0].rate, Rate::of_connections(7));
}

#[track_caller]
fn check_web(more: &str, expected: &[&str]) {
    check(
        &format!("limits: {{Web: {{\n  {WEB},\n  {more}}}}}\n"),
        expected,
    );
}

#[test]
fn what_has_no_meaning() {
    for field in ["burst: 5", "count: 5", "period: 1s", "rate: 5/second"] {
        let (name, _) = field.split_once(':').unwrap();
        let expected = format!(
            "3:13: '{name}' is not for cost connections: say how many may be open at once, such as \
             'limit: 50'"
        );
        check_web(
            &format!("limit: 50, {field}"),
            &[&expected.replace("3:13", "3:14")],
        );
    }
    for field in [
        "strategy: gcra",
        "ban: {after: 5 drops, within: 1s, for: 1m}",
    ] {
        let (name, _) = field.split_once(':').unwrap();
        let expected = format!(
            "3:14: '{name}' is not for cost connections, which no packet spends: leave it out, or \
             give it to a second limit with cost new-connections"
        );
        check_web(&format!("limit: 50, {field}"), &[&expected]);
    }
    check_web(
        "limit: 50, match: {tcp-flags: syn}",
        &[
            "3:33: 'tcp-flags' is of packets, but cost connections counts what is open: leave it out",
        ],
    );
    check_web(
        "limit: 50, match: {state: new}",
        &["3:29: 'state' is of packets, but cost connections counts what is open: leave it out"],
    );
    check_web(
        "limit: 50, match: {protocol: udp}",
        &["3:32: cost connections counts only tcp"],
    );
    check_web(
        "limit: 50, deny: syn-cookie",
        &[
            "3:20: no packet gets 'syn-cookie': a cookie would open a connection for which there is no room",
        ],
    );
    check_web(
        "limit: 50, deny: truncate",
        &[
            "3:20: no packet gets 'truncate': it answers DNS queries over UDP, and the limit counts no udp",
        ],
    );
    check_web(
        "limit: 50, reserve: {unknown: 50}",
        &[
            "3:33: invalid unknown '50', must be below the limit of 50: no connection of unknown sources \
           could ever be open",
        ],
    );
}

#[test]
fn who_is_turned_away_and_whom_slots_are_for() {
    let web = format!(
        "limits: {{Web: {{{WEB}, limit: 50, deny: {{unknown: reset, else: prohibited}}, \
         reserve: {{familiar: 2, unknown: 50%}}, ip-rep: busy}}}}\n\
         ip-rep: [{{name: busy, pressure: {{packets-per-second: 9}}}}]"
    );
    let policy = read(&web);
    let limit = &policy.limits[0];
    assert_eq!(limit.ip_rep.as_deref(), Some("busy"));
    let deny = limit.deny.map(|deny| deny.to_string());
    assert_eq!(deny.as_deref(), Some("{unknown: reset, else: prohibited}"));
    let reserve = limit.reserve.map(|reserve| reserve.to_string());
    assert_eq!(reserve.as_deref(), Some("{familiar: 2, unknown: 50%}"));
}

#[test]
fn queues() {
    for (written, expected) in [
        ("{}", Some((1000, 70_000_000_000))),
        ("{size: 256, max-age: 0}", Some((256, 0))),
        ("{size: 1k, max-age: 30s}", Some((1000, 30_000_000_000))),
        ("{size: 5, max_age: 30}", Some((5, 30_000_000_000))),
        ("{size: 0}", None),
    ] {
        let policy = read(&format!(
            "limits: {{Web: {{{WEB}, limit: 50, queue: {written}}}}}\n"
        ));
        let queue = policy.limits[0].queue;
        let found = queue.map(|queue| (queue.size, queue.max_age_ns));
        assert_eq!(found, expected, "{written}");
    }
    for (written, expected) in [
        (
            "{size: 32769}",
            "3:28: invalid size '32769', must be from 0 to 32768",
        ),
        (
            "{length: 5}",
            "3:22: unknown field 'length', must be one of size, max-age",
        ),
        (
            "5",
            "3:21: expected a map, possibly empty, with 'size' and 'max-age', found the number '5'",
        ),
    ] {
        check_web(&format!("limit: 50, queue: {written}"), &[expected]);
    }
    check_web(
        "limit: 50, mode: observe, queue: {}",
        &[
            "3:29: 'queue' is not for mode observe, which turns nobody away: leave it out, or enforce \
             the limit",
        ],
    );
    check(
        "limits: {Web: {id: ipAddress, cost: packets, rate: 5/s, queue: {}}}\n",
        &[
            "1:57: 'queue' is only for cost connections: nobody can wait for another limit, whose \
             budget comes back by itself",
        ],
    );
}

#[test]
fn numbers() {
    for (number, expected) in [
        ("0", "3:10: invalid limit '0', must be from 1 to 1000000"),
        (
            "1000001",
            "3:10: invalid limit '1000001', must be from 1 to 1000000",
        ),
    ] {
        check_web(&format!("limit: {number}"), &[expected]);
    }
    check_web(
        "mode: enforce",
        &["1:10: Web limits nothing: it needs limit, or overrides"],
    );
    check(
        "limits: {Web: {id: ipAddress, cost: packets, limit: 5, burst: 1, count: 1, period: 1s}}\n",
        &[
            "1:46: 'limit' is only for cost connections: other limits have burst, count and period, or \
           rate",
        ],
    );
    check(
        &format!(
            "limits: {{Web: {{{WEB}, limit: 5}}}}\noverrides: {{Web:192.0.2.1: {{burst: 5}}}}\n"
        ),
        &[
            "2:13: missing field 'limit'",
            "2:29: 'burst' is not for cost connections: say how many may be open at once, such as \
             'limit: 50'",
        ],
    );
}

#[test]
fn at_most_eight() {
    let limits: Vec<_> = (1..=9)
        .map(|number| format!("  W{number}: {{{WEB}, limit: 5}}\n"))
        .collect();
    check(
        &format!("limits:\n{}", limits.concat()),
        &["10:3: W9 is one too many: at most 8 limits have cost connections"],
    );
}

#[test]
fn groups() {
    let one = "One: {id: ipAddress, cost: connections, limit: 5, group: front}";
    let other = "Other: {id: ipAddress, cost: connections, limit: 3, group: front}";
    let policy = read(&format!("limits: {{{one}, {other}}}"));
    let groups = policy.limits.iter().map(|limit| limit.group.as_deref());
    assert_eq!(groups.collect::<Vec<_>>(), [Some("front"); 2]);
    let shown = check_text(&format!("limits: {{{one}, {other}}}"), &["--json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["limits"][0]["group"], "front", "{shown}");
    let text = |other: &str| format!("limits:\n  {one}\n  {other}\n");
    check(
        &format!("limits:\n  {one}\n"),
        &[
            "2:53: One is alone in the group 'front': give it to another limit, too, or leave it out",
        ],
    );
    let same = "share the count of the group 'front', so both need the same id and prefix-length";
    check(
        &text(&other.replace("ipAddress", "total")),
        &[
            &format!("2:53: One and Other {same}"),
            &format!("3:51: Other and One {same}"),
        ],
    );
    check(
        &text(&other.replace("group", "queue: {}, group")),
        &[
            "3:55: 'queue' is not for a limit with a 'group': nobody can say for which of its limits a \
             slot is free",
        ],
    );
    check(
        &text(&other.replace("front", "'a b'")),
        &[
            "2:53: One is alone in the group 'front': give it to another limit, too, or leave it out",
            "3:62: invalid group 'a b', expected a letter followed by up to 63 letters, digits, '-', '_' \
             or '.'",
        ],
    );
}

/// Like Traffic Server's `*`: it counts only connections that no other limit of its kind counts.
#[test]
fn otherwise() {
    let web = "Web: {id: total, cost: connections, limit: 2, match: {destination-port: 443}}";
    let rest = "Rest: {id: total, cost: connections, limit: 1, otherwise: true}";
    let policy = read(&format!("limits: {{{web}, {rest}}}"));
    let matching = policy.limits.iter().map(|limit| limit.matching.to_string());
    assert_eq!(matching.collect::<Vec<_>>(), ["otherwise", "dport 443"]);
    check(
        &format!("limits:\n  {rest}\n"),
        &[
            "2:3: no other limit that counts has id total and cost connections: leave 'otherwise' out of Rest",
        ],
    );
    let each = "Each: {id: ipAddress, cost: connections, limit: 1}";
    check(
        &format!("limits:\n  {each}\n  {rest}\n"),
        &[
            "3:3: no other limit that counts has id total and cost connections: leave 'otherwise' out of Rest",
        ],
    );
    let second = rest.replace("Rest", "Others");
    check(
        &format!("limits:\n  {web}\n  {rest}\n  {second}\n"),
        &[
            "4:3: Rest and Others both count what no other limit with id total and cost connections \
           does: leave 'otherwise' out of one",
        ],
    );
    check(
        &format!("limits:\n  {web}\n  {}\n", rest.replace("true", "maybe")),
        &["3:61: unknown otherwise 'maybe', must be one of true, false"],
    );
    check(
        "limits: {PacketsPerIPAddress: {rate: 5/s, burst: 5, otherwise: true}}",
        &[
            "1:53: 'otherwise' is not for PacketsPerIPAddress, a built-in limit with id ipAddress and cost \
           packets: use another name",
        ],
    );
}
