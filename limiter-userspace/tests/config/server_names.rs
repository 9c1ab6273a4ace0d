//! Limits that count packets by the server name of their connection.

use limiter_common::limit::IdFormat;

use super::harness::{check_positions as check, load};

const RATE: &str = "cost: bytes, burst: 2k, count: 1k, period: 1s";

fn limit(id: &str, rest: &str) -> String {
    format!("limits: {{Web: {{id: {id}, {RATE}{rest}}}}}\n")
}

#[test]
fn names_in_the_file_and_in_one_of_their_own() {
    let written = format!(
        "{}server-names: [B.Example., a.example]\n",
        limit("server-name", "")
    );
    let config = load(&[("limiter.yaml", written.as_bytes())]).unwrap();
    let names = config.policy.server_names.iter();
    let names: Vec<_> = names.map(ToString::to_string).collect();
    assert_eq!(names, ["a.example", "b.example"]);
    let in_file = format!(
        "{}server-names: {{file: names.txt}}\n",
        limit("server-name", "")
    );
    let files = [
        ("limiter.yaml", in_file.as_bytes()),
        ("names.txt", b"b.example # ours\nA.example\nB.EXAMPLE\n"),
    ];
    assert_eq!(
        load(&files).unwrap().policy.server_names,
        config.policy.server_names
    );
    // The protocol and port default to HTTPS.
    let limit = &config.policy.limits[0];
    assert_eq!(limit.id_format, IdFormat::ServerName);
    assert_eq!(limit.matching.to_string(), "tcp dport 443");
}

#[test]
fn a_match_with_names() {
    let text = limit(
        "ipAddress",
        ", match: {server-name: ['*.B.Example', a.example.], destination-port: [80, 443]}",
    );
    let config = load(&[("limiter.yaml", text.as_bytes())]).unwrap();
    assert_eq!(
        config.policy.limits[0].matching.to_string(),
        "tcp dport 80,443 server a.example,*.b.example"
    );
}

#[test]
fn protocols_with_names() {
    for (cost, more, protocols) in [
        (RATE, "destination-port: 443", "tcp"),
        (RATE, "protocol: udp", "udp"),
        (RATE, "protocol: tcp", "tcp"),
        (RATE, "protocol: [tcp, udp]", "tcp,udp"),
        (RATE, "state: established", "tcp"),
        (
            "cost: connections, limit: 9",
            "destination-port: 443",
            "tcp",
        ),
    ] {
        let text = format!(
            "limits: {{Web: {{id: total, {cost}, match: {{server-name: a.example, {more}}}}}}}\n"
        );
        let config = load(&[("limiter.yaml", text.as_bytes())]).unwrap();
        let shown = config.policy.limits[0].matching.to_string();
        assert_eq!(shown.split(' ').next(), Some(protocols), "{more}");
    }
}

#[test]
fn what_has_no_server_name() {
    check(
        &limit("server-name", ""),
        &[
            "1:10: Web needs a section 'server-names' with the names that get buckets, or a file of them",
        ],
    );
    check(
        &format!("{}server-names: []\n", limit("server-name", "")),
        &["2:15: no server names: name at least one"],
    );
    let wrong = |matching: &str, expected: &[&str]| {
        check(
            &limit("total", &format!(",\n match: {{{matching}}}")),
            expected,
        );
    };
    wrong(
        "server-name: a, protocol: icmp, fragments: count",
        &[
            "2:36: server names are read in tcp and udp alone: leave 'protocol' out, or name these",
            "2:53: 'fragments' has no effect: later fragments are of no known connection",
        ],
    );
    wrong(
        "server-name: a, dns-name: b",
        &[
            "2:23: no packet has both a DNS question and a server name",
            "2:36: no packet has both a DNS question and a server name",
        ],
    );
}

/// A SYN carries no server name, and a handshake completes before the client sends one.
#[test]
fn what_is_decided_before_the_name_is_known() {
    for cost in ["new-connections", "handshakes"] {
        let why = format!(
            "the server name is not known yet when cost {cost} is decided on: set 'cost' to packets, bytes or \
             connections"
        );
        for (names, id, matching, position) in [
            ("", "ipAddress", "server-name: a", "2:23"),
            ("", "total", "server-name: '*'", "2:23"),
            (
                "server-names: [a]",
                "server-name",
                "destination-port: 443",
                "1:20",
            ),
        ] {
            check(
                &format!(
                    "limits: {{Web: {{id: {id}, cost: {cost}, rate: 5/s,\n match: {{{matching}}}}}}}\n{names}\n"
                ),
                &[&format!("{position}: {why}")],
            );
        }
    }
    check(
        "server-names: [a]\nlimits: {Web: {id: server-name, cost: new-names, rate: 5/s}}\n",
        &[
            "2:20: id server-name is of connections, which cost new-names does not count: set 'cost' to packets, \
             bytes or connections",
        ],
    );
}
