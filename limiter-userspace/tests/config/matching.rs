//! The field `match` of a limit.

use super::harness::{check, load};

const RATE: &str = "burst: 2000, count: 1, period: 1s";

/// Returns a file with a limit of this id and cost, with its match on the third line.
fn limit(id: &str, cost: &str, matching: &str) -> String {
    format!("limits:\n  Own: {{id: {id}, cost: {cost}, {RATE},\nmatch: {matching}}}\n")
}

/// Checks the errors of a match; columns count from its start.
#[track_caller]
fn check_match(id: &str, cost: &str, matching: &str, expected: &[(usize, &str)]) {
    let expected: Vec<String> = expected
        .iter()
        .map(|(column, message)| format!("3:{}: {message}", "match: ".len() + column))
        .collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    check(&limit(id, cost, matching), &expected);
}

/// Checks that a match is displayed as `expected`.
#[track_caller]
fn check_shown(matching: &str, expected: &str) {
    let yaml = limit("ipAddress", "packets", matching);
    let config = load(&[("limiter.yaml", yaml.as_bytes())]).unwrap_or_else(|e| panic!("{e:?}"));
    assert_eq!(config.policy.limits[0].matching.to_string(), expected);
}

#[test]
fn what_is_accepted() {
    for (matching, expected) in [
        ("{protocol: udp, destination-port: 53}", "udp dport 53"),
        ("{protocol: [58, tcp, 0, 255]}", "0,tcp,icmpv6,255"),
        ("{protocol: [icmp]}", "icmp"),
        ("{source-port: 0}", "sport 0"),
        (
            "{destination-port: [65535, 9-9, '8000-8099', 8100-8200]}",
            "dport 9,8000-8099,8100-8200,65535",
        ),
        (
            "{protocol: [tcp, icmp], source-port: 1}",
            "icmp,tcp sport 1",
        ),
        ("{protocol: 132, source-port: 1}", "132 sport 1"),
        ("{tcp-flags: [syn, '!ack']}", "flags syn,!ack"),
        ("{tcp-flags: '!ack, syn'}", "flags syn,!ack"),
        (
            "{tcp-flags: [fin, syn, rst, psh, ack, urg, ece, cwr]}",
            "flags fin,syn,rst,psh,ack,urg,ece,cwr",
        ),
        (
            "{protocol: 6, tcp-flags: syn, fragments: count}",
            "tcp flags syn",
        ),
        (
            "{destination-port: 53, fragments: ignore}",
            "dport 53 no fragments",
        ),
        ("{icmp-type: echo-request}", "icmp-type echo-request"),
        (
            "{icmp-type: [redirect, echo-request, neighbor-solicitation, neighbour-advertisement]}",
            "icmp-type redirect,echo-request,neighbour-solicitation,neighbour-advertisement",
        ),
        (
            "{protocol: icmp, icmp-type: 8}",
            "icmp icmp-type echo-request",
        ),
        (
            "{protocol: icmpv6, icmp-type: [255, 0, packet-too-big]}",
            "icmpv6 icmp-type 0,packet-too-big,255",
        ),
        (
            "{protocol: [icmpv6, 1], icmp-type: [echo-reply, packet-too-big], fragments: ignore}",
            "icmp,icmpv6 icmp-type echo-reply,packet-too-big no fragments",
        ),
        ("{destination: 192.0.2.1}", "to 192.0.2.1"),
        ("{state: none}", "state none"),
        ("{state: [none, new], protocol: tcp}", "tcp state new,none"),
        (
            "{destination: ['2001:db8::/32', 10.0.0.0/8, 10.0.0.0/9]}",
            "to 10.0.0.0/8,10.0.0.0/9,2001:db8::/32",
        ),
    ] {
        check_shown(matching, expected);
    }
}

/// Checks the errors of a match in a limit that allows every field.
#[track_caller]
fn check_any(matching: &str, expected: &[(usize, &str)]) {
    check_match("ipAddress", "packets", matching, expected);
}

#[test]
fn matches_of_the_wrong_form() {
    let fields = "protocol, destination-port, source-port, tcp-flags, icmp-type, destination, fragments, standing, state, dns-name, dns-type, dns-opcode, dns-rd, edns or server-name";
    check_any(
        "{}",
        &[(1, "an empty match selects every packet: leave 'match' out")],
    );
    check_any(
        "~",
        &[(1, &format!("expected a map with {fields}, found nothing"))],
    );
    check_any(
        "udp",
        &[(
            1,
            &format!("expected a map with {fields}, found the text 'udp'"),
        )],
    );
    check_any(
        "{dport: 53, proto: udp, destination-prt: 1}",
        &[
            (2, "unknown field 'dport', did you mean 'destination-port'?"),
            (13, "unknown field 'proto', did you mean 'protocol'?"),
            (
                25,
                "unknown field 'destination-prt', did you mean 'destination-port'?",
            ),
        ],
    );
}

#[test]
fn sources_are_not_matched() {
    check_any(
        "{source: 192.0.2.1}",
        &[(
            2,
            "unknown field 'source': sources are chosen by 'exclude', 'block' and 'overrides'",
        )],
    );
}

#[test]
fn protocols() {
    let number = "(or a number from 0 to 255)";
    check_any(
        "{protocol: [tcpp, gre, 256, -1, '6', 1.5, [], ~, UDP]}",
        &[
            (
                13,
                &format!("unknown protocol 'tcpp', did you mean 'tcp'? {number}"),
            ),
            (
                19,
                &format!("unknown protocol 'gre', must be one of tcp, udp, icmp, icmpv6 {number}"),
            ),
            (24, "invalid protocol '256', must be from 0 to 255"),
            (29, "invalid protocol '-1', must be from 0 to 255"),
            (33, "invalid protocol '6', must be a number without quotes"),
            (
                38,
                "invalid protocol '1.5', must be a whole number, such as 250 or 10k",
            ),
            (43, "expected a protocol, such as udp or 47, found a list"),
            (47, "expected a protocol, such as udp or 47, found nothing"),
            (
                50,
                &format!("unknown protocol 'UDP', did you mean 'udp'? {number}"),
            ),
        ],
    );
    check_any(
        "{protocol: [tcp, 17, 6, udp]}",
        &[
            (22, "duplicate protocol '6', first at 3:20"),
            (25, "duplicate protocol 'udp', first at 3:25"),
        ],
    );
    check_any("{protocol: []}", &[(12, "no protocols: name at least one")]);
}

#[test]
fn ports() {
    let expected = "expected a port from 0 to 65535, or a range such as '8000-8099'";
    check_any(
        "{destination-port: [65536, -1, '53', http, 1-65536, 9-8, 1-, 1-2-3, 01-2, ~, {}]}",
        &[
            (21, "invalid port '65536', must be from 0 to 65535"),
            (28, "invalid port '-1', must be from 0 to 65535"),
            (32, "invalid port '53', must be a number without quotes"),
            (38, &format!("invalid port 'http', {expected}")),
            (44, &format!("invalid port '1-65536', {expected}")),
            (
                53,
                "invalid port '9-8', must begin with the lower port, did you mean '8-9'?",
            ),
            (58, &format!("invalid port '1-', {expected}")),
            (62, &format!("invalid port '1-2-3', {expected}")),
            (69, &format!("invalid port '01-2', {expected}")),
            (75, &format!("{expected}, found nothing")),
            (78, &format!("{expected}, found an empty mapping")),
        ],
    );
    check_any(
        "{source-port: [53, 80-90, 53, 85, 70-80, 89-100]}",
        &[
            (27, "ports '53' overlap with '53' at 3:23"),
            (31, "ports '85' overlap with '80-90' at 3:27"),
            (35, "ports '70-80' overlap with '80-90' at 3:27"),
            (42, "ports '89-100' overlap with '80-90' at 3:27"),
        ],
    );
    check_any("{source-port: []}", &[(15, "no ports: name at least one")]);
}

#[test]
fn tcp_flags() {
    let expected = "expected TCP flags, such as 'syn,!ack'";
    check_any(
        "{tcp-flags: [SYN, ak, '!!ack', '', 5, [syn], 'syn,ack']}",
        &[
            (14, "unknown TCP flag 'SYN', did you mean 'syn'?"),
            (19, "unknown TCP flag 'ak', did you mean 'ack'?"),
            (23, "unknown TCP flag '!ack', did you mean 'ack'?"),
            (
                32,
                "unknown TCP flag '', must be one of fin, syn, rst, psh, ack, urg, ece, cwr",
            ),
            (36, &format!("{expected}, found the number '5'")),
            (39, &format!("{expected}, found a list")),
            (
                46,
                "unknown TCP flag 'syn,ack', must be one of fin, syn, rst, psh, ack, urg, ece, cwr",
            ),
        ],
    );
    check_any(
        "{tcp-flags: 'syn,!syn,ack,ack,x'}",
        &[
            (13, "TCP flag 'syn' cannot be both set and clear"),
            (13, "duplicate TCP flag 'ack'"),
            (
                13,
                "unknown TCP flag 'x', must be one of fin, syn, rst, psh, ack, urg, ece, cwr",
            ),
        ],
    );
    check_any(
        "{tcp-flags: []}",
        &[(13, "no TCP flags: name at least one")],
    );
    check_any(
        "{tcp-flags: ~}",
        &[(13, &format!("{expected}, found nothing"))],
    );
}

#[test]
fn tcp_flags_without_quotes() {
    for (matching, column) in [
        // The error points to the value that would get the tag.
        ("{tcp-flags: [syn, !ack]}", 23),
        ("{tcp-flags: [!ack , syn]}", 18),
        ("{tcp-flags: [!ack syn]}", 19),
        ("{tcp-flags: !ack}", 17),
        ("{tcp-flags: syn,!ack }", 21),
    ] {
        check_any(
            matching,
            &[(
                column,
                "'!ack' is a tag in YAML: put a text that begins with '!' in quotes",
            )],
        );
    }
    // Where a comma does not end the scalar, `!` does not begin one.
    check(
        &format!(
            "limits:\n  Own:\n    <<: {{id: total, cost: packets, {RATE}}}\n    match:\n      \
             tcp-flags: syn,!ack\n"
        ),
        &[],
    );
}

#[test]
fn icmp_types() {
    let number = "(or a number from 0 to 255)";
    let names = "echo-request, echo-reply, destination-unreachable, time-exceeded, parameter-problem, \
                 packet-too-big, redirect, router-solicitation, router-advertisement, \
                 neighbour-solicitation, neighbour-advertisement, multicast-listener-query, \
                 multicast-listener-report, multicast-listener-done, timestamp-request, \
                 timestamp-reply";
    let expected = "expected an ICMP type, such as echo-request or 8";
    check_any(
        "{protocol: icmp, icmp-type: [echo-requst, ping, x, 256, -1, '8', 1.5, [], ~]}",
        &[
            (
                30,
                &format!("unknown icmp-type 'echo-requst', did you mean 'echo-request'? {number}"),
            ),
            (
                43,
                &format!("unknown icmp-type 'ping', did you mean 'echo-request'? {number}"),
            ),
            (
                49,
                &format!("unknown icmp-type 'x', must be one of {names} {number}"),
            ),
            (52, "invalid icmp-type '256', must be from 0 to 255"),
            (57, "invalid icmp-type '-1', must be from 0 to 255"),
            (61, "invalid icmp-type '8', must be a number without quotes"),
            (
                66,
                "invalid icmp-type '1.5', must be a whole number, such as 250 or 10k",
            ),
            (71, &format!("{expected}, found a list")),
            (75, &format!("{expected}, found nothing")),
        ],
    );
    check_any(
        "{icmp-type: []}",
        &[(13, "no ICMP types: name at least one")],
    );
    check_any(
        "{protocol: icmpv6, icmp-type: [echo-request, 128]}",
        &[(46, "duplicate icmp-type '128', first at 3:39")],
    );
    check_any(
        "{icmp-type: [neighbor-solicitation, neighbour-solicitation]}",
        &[(
            37,
            "duplicate icmp-type 'neighbour-solicitation', first at 3:21",
        )],
    );
}

/// Numbers mean something else in the other protocol.
#[test]
fn icmp_types_and_their_protocol() {
    let differs = "icmp-type '8' differs between icmp and icmpv6: set 'protocol' to one of them, or \
                   write a name, such as echo-request";
    check_any("{icmp-type: 8}", &[(13, differs)]);
    check_any("{icmp-type: [echo-reply, 8]}", &[(26, differs)]);
    check_any("{protocol: [icmp, icmpv6], icmp-type: 8}", &[(39, differs)]);
    for protocol in ["tcp", "[icmp, udp]"] {
        check_any(
            &format!("{{icmp-type: 8, protocol: {protocol}}}"),
            &[(
                13,
                "only icmp and icmpv6 have types, but 'protocol' names another protocol",
            )],
        );
    }
    check_any(
        "{icmp-type: [echo-request, packet-too-big], protocol: icmp}",
        &[(
            28,
            "only icmpv6 has the type 'packet-too-big', which 'protocol' leaves out",
        )],
    );
    check_any(
        "{icmp-type: timestamp-reply, protocol: 58}",
        &[(
            13,
            "only icmp has the type 'timestamp-reply', which 'protocol' leaves out",
        )],
    );
    check_any(
        "{icmp-type: packet-too-big, protocol: [icmp, icmpv6]}",
        &[(
            13,
            "icmp has none of these types: leave it out of 'protocol'",
        )],
    );
    // The meaning of a number is unknown.
    check_any(
        "{icmp-type: 8, protocol: icpm}",
        &[(
            26,
            "unknown protocol 'icpm', did you mean 'icmp'? (or a number from 0 to 255)",
        )],
    );
    check_any(
        "{icmp-type: 8, proto: icmp}",
        &[(16, "unknown field 'proto', did you mean 'protocol'?")],
    );
}

#[test]
fn icmp_types_and_what_their_messages_lack() {
    for (field, value) in [
        ("destination-port", "53"),
        ("source-port", "53"),
        ("tcp-flags", "syn"),
        ("state", "none"),
    ] {
        let column = "{icmp-type: echo-request, : ".len() + field.len() + 1;
        check_any(
            &format!("{{icmp-type: echo-request, {field}: {value}}}"),
            &[(
                column,
                &format!("no packet has both this and an ICMP type: leave '{field}' out"),
            )],
        );
    }
    check_any(
        "{icmp-type: echo-request, dns-type: ANY}",
        &[(
            13,
            "DNS questions are read in udp alone: leave 'icmp-type' out",
        )],
    );
    check_any(
        "{icmp-type: echo-request, server-name: a.example}",
        &[(
            13,
            "server names are read in tcp and udp alone: leave 'icmp-type' out",
        )],
    );
    for (id, name, protocol) in [
        ("ipv4RangeCIDR", "packet-too-big", "icmpv6"),
        ("ipv6RangeCIDR", "timestamp-reply", "icmp"),
    ] {
        check_match(
            id,
            "packets",
            &format!("{{icmp-type: {name}}}"),
            &[(
                13,
                &format!("only {protocol} has these types, which id {id} never sees"),
            )],
        );
        check_match(id, "packets", "{icmp-type: echo-request}", &[]);
    }
    check_match(
        "ipAddress",
        "new-connections",
        "{icmp-type: echo-request}",
        &[(13, "cost new-connections counts only tcp")],
    );
}

#[test]
fn destinations() {
    check_any(
        "{destination: [10.0.0.1/8, 10.0.0.0/8, 10.0.0.0/8, host, 'fe80::1%eth0']}",
        &[
            (
                16,
                "invalid destination '10.0.0.1/8', must have no host bits set, did you mean \
                 '10.0.0.0/8'?",
            ),
            (40, "duplicate destination '10.0.0.0/8', first at 3:35"),
            (
                52,
                "invalid destination 'host', expected an address or prefix, such as \
                 '192.0.2.0/24' or '2001:db8::1'",
            ),
            (
                58,
                "invalid destination 'fe80::1%eth0', must have no zone ('%…'): an address is \
                 limited on every interface",
            ),
        ],
    );
    check_any(
        "{destination: []}",
        &[(15, "no destinations: name at least one")],
    );
}

#[test]
fn states_of_connections() {
    check_any(
        "{state: [new, nine]}",
        &[(15, "unknown state 'nine', did you mean 'none'?")],
    );
    check_any(
        "{state: [new, new]}",
        &[(15, "duplicate state 'new', first at 3:17")],
    );
    check_any(
        "{state: [new, established, none]}",
        &[(9, "every TCP segment has one of these: leave 'state' out")],
    );
    check_any(
        "{protocol: udp, state: none}",
        &[(
            24,
            "only tcp has connections, but 'protocol' names another protocol",
        )],
    );
    check_any(
        "{state: none, fragments: ignore}",
        &[(
            26,
            "'fragments' has no effect with 'state': later fragments are not counted",
        )],
    );
    let never = "no packet matches: a SYN begins a connection, so its state is new";
    check_any(
        "{tcp-flags: 'syn,!ack', state: [established, none]}",
        &[(32, never)],
    );
    check_any("{tcp-flags: 'syn,ack', state: none}", &[]);
    check_match(
        "ipAddress",
        "new-connections",
        "{state: established}",
        &[(9, never)],
    );
}

#[test]
fn fragments() {
    check_any(
        "{destination-port: 53, fragments: ignored}",
        &[(35, "unknown fragments 'ignored', did you mean 'ignore'?")],
    );
    for matching in ["{fragments: ignore}", "{fragments: count}"] {
        check_any(
            matching,
            &[(
                13,
                "'fragments' has no effect without protocol, destination-port, source-port, \
                 tcp-flags or icmp-type",
            )],
        );
    }
    // A later IPv6 fragment does not tell its protocol; an IPv4 one does.
    check_match(
        "ipv6RangeCIDR",
        "packets",
        "{protocol: udp, fragments: ignore}",
        &[],
    );
    check_match(
        "ipv4RangeCIDR",
        "packets",
        "{protocol: udp, fragments: ignore}",
        &[(
            28,
            "'fragments' has no effect without destination-port, source-port, tcp-flags or \
             icmp-type",
        )],
    );
    // Invalid ports count as present: no error about missing ones.
    check_any(
        "{destination-port: 99999, fragments: ignore}",
        &[(20, "invalid port '99999', must be from 0 to 65535")],
    );
}

#[test]
fn contradictions() {
    let no_ports = "no packet matches: only tcp, udp, 33 (DCCP), 132 (SCTP) and 136 (UDP-Lite) \
                    have ports";
    check_any(
        "{protocol: [icmp, 47], destination-port: 1, source-port: 2}",
        &[(42, no_ports), (58, no_ports)],
    );
    for protocol in ["udp", "[tcp, udp]", "1"] {
        let column = "{protocol: , tcp-flags: ".len() + protocol.len() + 1;
        check_any(
            &format!("{{protocol: {protocol}, tcp-flags: syn}}"),
            &[(
                column,
                "only tcp has these flags, but 'protocol' names another protocol",
            )],
        );
    }
    for (id, protocol, name) in [
        ("ipv4RangeCIDR", "icmpv6", "icmpv6"),
        ("ipv4RangeCIDR", "[tcp, 58]", "icmpv6"),
        ("ipv6RangeCIDR", "icmp", "icmp"),
    ] {
        check_match(
            id,
            "bytes",
            &format!("{{protocol: {protocol}}}"),
            &[(12, &format!("id {id} never sees {name}"))],
        );
    }
    check_match("ipv4RangeCIDR", "bytes", "{protocol: icmp}", &[]);
    for (id, destination) in [
        ("ipv4RangeCIDR", "'2001:db8::/32'"),
        ("ipv6RangeCIDR", "[10.0.0.1, 10.0.0.2]"),
    ] {
        check_match(
            id,
            "packets",
            &format!("{{destination: {destination}}}"),
            &[(
                15,
                &format!("no packet matches: id {id} is for the other IP version"),
            )],
        );
        check_match(id, "packets", "{destination: [10.0.0.1, '::1']}", &[]);
    }
}

#[test]
fn contradictions_of_new_connections() {
    let check = |matching: &str, expected: &[(usize, &str)]| {
        check_match("total", "new-connections", matching, expected);
    };
    check("{protocol: tcp, tcp-flags: 'syn,!ack,ece'}", &[]);
    check("{destination-port: 443}", &[]);
    for protocol in ["udp", "[tcp, udp]"] {
        check(
            &format!("{{protocol: {protocol}}}"),
            &[(12, "cost new-connections counts only tcp")],
        );
    }
    for flags in ["ack", "!syn"] {
        check(
            &format!("{{tcp-flags: '{flags}'}}"),
            &[(
                13,
                &format!(
                    "no packet matches: a new connection has syn without ack, never '{flags}'"
                ),
            )],
        );
    }
}
