use limiter_policy::testing;

use super::{
    blocked,
    guarded::{GuardReason, GuardedAddress},
    lockout, sessions, *,
};

const PEER: &str = "203.0.113.9";

fn ssh(address: &str) -> GuardedAddress {
    sessions::from_environment(&format!("{address} 50000 192.0.2.1 22")).unwrap()
}

fn gateway(address: &str) -> GuardedAddress {
    GuardedAddress {
        address: address.parse().unwrap(),
        why: GuardReason::Gateway,
    }
}

#[track_caller]
fn warnings(guarded: &[GuardedAddress], configuration: &str) -> Vec<Warning> {
    let policy = testing::policy(configuration);
    lockout::warnings(&policy, guarded.iter().copied())
}

/// Checks the warnings for these guarded addresses.
#[track_caller]
fn check(guarded: &[GuardedAddress], configuration: &str, expected: &[&str]) {
    let warnings = warnings(guarded, configuration);
    let shown: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(shown, expected, "{configuration}");
}

/// Checks whether one limit causes a warning, for the peer of an SSH session.
#[track_caller]
fn check_limit(limit: &str, warned: bool) {
    let warnings = warnings(&[ssh(PEER)], &format!("{{limits: {{{limit}}}}}"));
    assert_eq!(!warnings.is_empty(), warned, "{limit}: {warnings:?}");
}

#[test]
fn a_budget_that_leaves_enough_or_not() {
    const TOO_LITTLE: [&str; 8] = [
        "PacketsPerIPAddress: {burst: 19, count: 20, period: 1s}",
        "PacketsPerIPAddress: {burst: 20, count: 19, period: 1s}",
        "PacketsPerIPAddress: {burst: 20, count: 20, period: 1001ms}",
        "BytesPerIPAddress: {burst: 15999, count: 20000, period: 1s}",
        "BytesPerIPAddress: {burst: 16000, count: 19999, period: 1s}",
        "NewConnectionsPerIPAddress: {burst: 2, count: 1, period: 10s}",
        "NewConnectionsPerIPAddress: {burst: 3, count: 1, period: 11s}",
        "PacketsPerIPAddress: {burst: 1000000, count: 1, period: 1s}",
    ];
    const ENOUGH: [&str; 5] = [
        "PacketsPerIPAddress: {burst: 20, count: 20, period: 1s}",
        "PacketsPerIPAddress: {burst: 20, count: 1, period: 50ms}",
        "BytesPerIPAddress: {burst: 16000, count: 20000, period: 1s}",
        "NewConnectionsPerIPAddress: {burst: 3, count: 1, period: 10s}",
        "NewConnectionsPerIPAddress: {burst: 3, count: 6, period: 1m}",
    ];
    for limit in TOO_LITTLE {
        check_limit(limit, true);
    }
    for limit in ENOUGH {
        check_limit(limit, false);
    }
}

#[test]
fn only_what_counts_the_session_holds_it() {
    let limit = |cost: &str, matching: &str, mode: &str| {
        format!(
            "Own: {{id: ipAddress, cost: {cost}, match: {{{matching}}}, mode: {mode}, burst: 1, \
             count: 1, period: 1h}}"
        )
    };
    let rows = [
        ("protocol: tcp", true),
        ("protocol: [udp, tcp]", true),
        ("protocol: udp", false),
        ("destination-port: 22", true),
        ("destination-port: [80, 1-79]", true),
        ("destination-port: 443", false),
        ("source-port: 53", false),
        ("source-port: 1000-2000", true),
        ("destination: 192.0.2.0/24", true),
        ("destination: 198.51.100.7", false),
        ("tcp-flags: '!syn'", true),
        ("tcp-flags: 'syn,!ack'", true),
        ("tcp-flags: rst", false),
        ("icmp-type: echo-request", false),
        ("state: none", false),
        ("state: new", true),
        ("state: [established, none]", true),
        ("state: new, tcp-flags: '!syn'", false),
    ];
    for (matching, warned) in rows {
        check_limit(&limit("packets", matching, "enforce"), warned);
        check_limit(&limit("packets", matching, "observe"), false);
        check_limit(&limit("packets", matching, "off"), false);
    }
    check_limit(
        &limit("new-connections", "destination-port: 22", "enforce"),
        true,
    );
    check_limit(
        &limit("new-connections", "destination-port: 80", "enforce"),
        false,
    );
    // Ten SYNs at once and one every ten seconds are enough to log in, but not to work.
    let slow = |flags| {
        format!(
            "Own: {{id: ipAddress, cost: packets, match: {{tcp-flags: {flags}}}, burst: 10, count: \
             1, period: 10s}}"
        )
    };
    check_limit(&slow("'syn,!ack'"), false);
    check_limit(&slow("ack"), true);
    let bytes = |count| {
        format!(
            "Own: {{id: ipAddress, cost: bytes, match: {{tcp-flags: 'syn,!ack'}}, burst: 1514, \
             count: {count}, period: 10s}}"
        )
    };
    check_limit(&bytes(74), false);
    check_limit(&bytes(73), true);
}

#[test]
fn windows_have_to_let_pass_at_once_what_comes_at_once() {
    let check_window = |count: u64, expected: &[&str]| {
        let configuration = format!(
            "limits: {{PacketsPerIPAddress: {{strategy: fixed-window, rate: {count}/second}}}}"
        );
        check(&[ssh(PEER)], &configuration, expected);
    };
    check_window(20, &[]);
    check_window(
        19,
        &[
            "limit PacketsPerIPAddress would hold the SSH peer 203.0.113.9 to {count: 19, period: \
             1s} in packets, but it needs at least {count: 20, period: 1s}: give 203.0.113.9 \
             an override with room",
        ],
    );
}

#[test]
fn shared_budgets_are_theirs_too() {
    const SLOW: &str = "{burst: 10, count: 1, period: 1s}";
    let check_limit = |name: &str, more: &str, guarded: &[GuardedAddress], expected: &[&str]| {
        let configuration = format!("limits: {{{name}: {SLOW}}}\n{more}");
        check(guarded, &configuration, expected);
    };
    check_limit(
        "PacketsPerIPv4Range",
        "",
        &[ssh(PEER)],
        &[
            "limit PacketsPerIPv4Range would hold the SSH peer 203.0.113.9, with all of \
             203.0.113.0/24 together, to {burst: 10, count: 1, period: 1s} in packets, but it \
             needs at least {burst: 20, count: 20, period: 1s}: give 203.0.113.0/24 an override \
             with room",
        ],
    );
    check_limit("PacketsPerIPv6Range", "", &[ssh(PEER)], &[]);
    check_limit(
        "PacketsPerIPv6Range",
        "",
        &[ssh("2001:db8:1:2::3")],
        &[
            "limit PacketsPerIPv6Range would hold the SSH peer 2001:db8:1:2::3, with all of \
             2001:db8:1::/48 together, to {burst: 10, count: 1, period: 1s} in packets, but it \
             needs at least {burst: 20, count: 20, period: 1s}: give 2001:db8:1::/48 an override \
             with room",
        ],
    );
    let subscribers = "subscribers: {7: 203.0.113.0/28}";
    check_limit(
        "PacketsPerSubscriber",
        subscribers,
        &[ssh(PEER)],
        &[
            "limit PacketsPerSubscriber would hold the SSH peer 203.0.113.9, with all of \
             subscriber 7 together, to {burst: 10, count: 1, period: 1s} in packets, but it \
             needs at least {burst: 20, count: 20, period: 1s}: give 7 an override with room",
        ],
    );
    check_limit(
        "PacketsPerSubscriber",
        subscribers,
        &[ssh("203.0.113.16")],
        &[],
    );
    check(
        &[ssh(PEER)],
        "limits: {All: {id: total, cost: bytes, burst: 2000, count: 2000, period: 1s}}",
        &[
            "limit All would hold the SSH peer 203.0.113.9, with everybody together, to {burst: \
             2000, count: 2000, period: 1s} in bytes, but it needs at least {burst: 16000, \
             count: 20000, period: 1s}: give the limit room, or a match that spares them",
        ],
    );
}

#[test]
fn overrides_hold_in_place_of_the_default() {
    let sections = |default: &str, of_peer: &str| {
        format!(
            "limits: {{PacketsPerIPAddress: {{burst: {default}, count: 100, period: 1s}}}}\n\
             overrides:\n  PacketsPerIPAddress:203.0.113.9: {{burst: {of_peer}, count: 100, \
             period: 1s}}\n"
        )
    };
    check(&[ssh(PEER)], &sections("1", "100"), &[]);
    let warning = "limit PacketsPerIPAddress would hold the SSH peer 203.0.113.9 to {burst: 1, \
                   count: 100, period: 1s} in packets, but it needs at least {burst: 20, count: \
                   20, period: 1s}: give 203.0.113.9 an override with room";
    check(&[ssh(PEER)], &sections("100", "1"), &[warning]);
    // Without a default rate, other addresses are not limited.
    let only = "overrides: {'PacketsPerIPAddress:203.0.113.9': {burst: 1, count: 1, period: 1h}}";
    check(&[ssh("203.0.113.10")], only, &[]);
}

#[test]
fn alike_is_told_once() {
    let limits = "limits: {PacketsPerIPAddress: {burst: 1, count: 1, period: 1s}}";
    let other_port = sessions::from_environment(&format!("{PEER} 5 192.0.2.1 2222")).unwrap();
    check(
        &[
            ssh(PEER),
            other_port,
            ssh("2001:db8::1"),
            ssh("203.0.113.8"),
            gateway("fe80::1"),
        ],
        limits,
        &[
            "limit PacketsPerIPAddress would hold the SSH peer 203.0.113.9 (and 2 more) to {burst: \
             1, count: 1, period: 1s} in packets, but it needs at least {burst: 20, count: 20, \
             period: 1s}: give 203.0.113.9 an override with room",
            "limit PacketsPerIPAddress would hold the default gateway fe80::1 to {burst: 1, count: \
             1, period: 1s} in packets, but it needs at least {burst: 20, count: 20, period: \
             1s}: give fe80::1 an override with room",
        ],
    );
}

#[test]
fn gateways_say_little() {
    let check = |address, matching: &str, warned: bool| {
        let sections = format!(
            "limits: {{Own: {{id: ipAddress, cost: packets, {matching}, burst: 1, count: 1, \
             period: 1s}}}}"
        );
        let warnings = warnings(&[gateway(address)], &sections);
        assert_eq!(!warnings.is_empty(), warned, "{matching}: {warnings:?}");
    };
    check("192.0.2.254", "match: {protocol: icmp}", true);
    check("fe80::1", "match: {protocol: icmp}", false);
    check("fe80::1", "match: {protocol: icmpv6}", true);
    for address in ["192.0.2.254", "fe80::1"] {
        check(address, "match: {icmp-type: echo-request}", false);
        check(address, "match: {icmp-type: destination-unreachable}", true);
    }
    check(
        "192.0.2.254",
        "match: {icmp-type: neighbour-advertisement}",
        false,
    );
    check(
        "fe80::1",
        "match: {icmp-type: neighbour-advertisement}",
        true,
    );
    check("192.0.2.254", "match: {destination-port: 179}", true);
    check("192.0.2.254", "match: {destination-port: 443}", false);
    check(
        "192.0.2.254",
        "match: {protocol: udp, destination-port: 53}",
        false,
    );
    check("192.0.2.254", "match: {tcp-flags: 'syn,!ack'}", false);
}

#[test]
fn the_environment_of_a_session() {
    let check = |text, expected: Option<(&str, &str, u16)>| {
        let expected = expected.map(|(peer, local, port)| GuardedAddress {
            address: peer.parse().unwrap(),
            why: GuardReason::Ssh {
                local: local.parse().unwrap(),
                port,
            },
        });
        assert_eq!(sessions::from_environment(text), expected, "{text}");
    };
    check(
        "203.0.113.9 50000 192.0.2.1 22",
        Some(("203.0.113.9", "192.0.2.1", 22)),
    );
    check(
        "fe80::9%eth0 50000 fe80::1%eth0 2222",
        Some(("fe80::9", "fe80::1", 2222)),
    );
    check(
        "::ffff:203.0.113.9 50000 ::ffff:192.0.2.1 22",
        Some(("203.0.113.9", "192.0.2.1", 22)),
    );
    // `sshd -i` without a socket sets this.
    check("UNKNOWN 65535 UNKNOWN 65535", None);
    check("", None);
    check("203.0.113.9 50000 192.0.2.1", None);
}

const OWN: &str = "192.0.2.254";

/// Checks the warnings of lists.
#[track_caller]
fn check_blocked(guarded: &[GuardedAddress], uses: &str, limit: &str, expected: &[&str]) {
    let configuration = format!(
        "lists: [{{name: bad, cidr: [203.0.113.0/24, 192.0.2.254]}}, {{name: good, cidr: {PEER}}}]\n\
         limits: {{All: {{id: ipAddress, cost: packets, burst: 20, count: 20, period: 1s, \
         {limit}}}}}\n{uses}\n"
    );
    let policy = testing::policy(&configuration);
    let shown = blocked::warnings(&policy, guarded, &[OWN.parse().unwrap()]);
    let shown: Vec<String> = shown.iter().map(ToString::to_string).collect();
    assert_eq!(shown, expected, "{configuration}");
}

#[test]
fn lists_that_block() {
    let guarded = [
        ssh(PEER),
        ssh("203.0.113.10"),
        ssh("198.51.100.1"),
        gateway("203.0.113.254"),
    ];
    let peers = "list bad has 203.0.113.0/24, so it would block the SSH peer 203.0.113.9 (and 1 \
                 more): take it off the list; or put 203.0.113.9 on a list under `exclude`, but \
                 then anybody who forges it escapes every limit";
    let other = "list bad has 203.0.113.0/24, so it would block the SSH peer 203.0.113.10: take it \
                 off the list; or put 203.0.113.10 on a list under `exclude`, but then anybody \
                 who forges it escapes every limit";
    let gateway = "list bad has 203.0.113.0/24, so it would block the default gateway \
                   203.0.113.254: take it off the list; or put 203.0.113.254 on a list under \
                   `exclude`, but then anybody who forges it escapes every limit";
    let own = "list bad has 192.0.2.254/32, so it would block this machine's own address \
               192.0.2.254: take it off the list; or put 192.0.2.254 on a list under `exclude`, \
               but then anybody who forges it escapes every limit";
    let of_limit = "list bad has 203.0.113.0/24, so limit All would block the SSH peer 203.0.113.9 \
                    (and 1 more): take it off the list; or put 203.0.113.9 on a list under \
                    `exclude`, but then anybody who forges it escapes every limit";
    check_blocked(
        &guarded,
        "block: bad",
        "mode: enforce",
        &[peers, gateway, own],
    );
    check_blocked(
        &guarded,
        "block: bad\nexclude: good",
        "mode: enforce",
        &[other, gateway, own],
    );
    let ssh_only = "match: {destination-port: 22}, block: bad";
    check_blocked(&guarded, "", ssh_only, &[of_limit]);
    check_blocked(&guarded, "exclude: bad", ssh_only, &[]);
    check_blocked(&guarded, "", "mode: observe, block: bad", &[]);
    check_blocked(
        &guarded,
        "",
        "match: {destination-port: 443}, block: bad",
        &[],
    );
}

/// Limits have no effect on addresses that lists exclude or block.
#[test]
fn lists_before_limits() {
    for (uses, held) in [("", 1), ("exclude: peer", 0), ("block: peer", 0)] {
        let configuration = format!(
            "lists: [{{name: peer, cidr: {PEER}}}]\n{uses}\n\
             limits: {{PacketsPerIPAddress: {{burst: 1, count: 1, period: 1h}}}}\n"
        );
        assert_eq!(warnings(&[ssh(PEER)], &configuration).len(), held, "{uses}");
        let configuration = configuration.replace("burst", "exclude: peer, burst");
        assert_eq!(warnings(&[ssh(PEER)], &configuration).len(), 0, "{uses}");
    }
}
