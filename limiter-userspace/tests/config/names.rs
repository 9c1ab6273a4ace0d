//! Limits that count packets by their DNS question: zones, and the fields of `match`.

use limiter_common::limit::{IdFormat, NameKind};
use limiter_policy::policy::DnsMatch;

use super::harness::{check_positions as check, load};

const RATE: &str = "cost: packets, burst: 1, count: 1, period: 1s";

fn limit(id: &str, rest: &str) -> String {
    format!("limits: {{Names: {{id: {id}, {RATE}{rest}}}}}\n")
}

#[test]
fn zones_in_the_file_and_in_one_of_their_own() {
    let written = format!("{}zones: [B.Example., a.example]\n", limit("zone", ""));
    let config = load(&[("limiter.yaml", written.as_bytes())]).unwrap();
    let zones: Vec<_> = config
        .policy
        .zones
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(zones, ["a.example", "b.example"]);
    let named = format!("{}zones: {{file: zones.txt}}\n", limit("zone", ""));
    let file = "# ours\nb.example.  # twice\n\nA.example\nB.EXAMPLE\n";
    let files = [
        ("limiter.yaml", named.as_bytes()),
        ("zones.txt", file.as_bytes()),
    ];
    assert_eq!(load(&files).unwrap().policy.zones, config.policy.zones);
    // The protocol and port default to DNS.
    let limit = &config.policy.limits[0];
    assert_eq!(limit.id_format, IdFormat::Zone);
    assert_eq!(limit.matching.to_string(), "udp dport 53");
}

#[test]
fn a_name_beside_the_source() {
    for (id, rest, format, per_name) in [
        (
            "[ipAddress, question]",
            "",
            IdFormat::IpAddress,
            NameKind::Question,
        ),
        ("[regId, question]", "", IdFormat::RegId, NameKind::Question),
        (
            "[ipv6RangeCIDR, zone]",
            ", prefix-length: 64",
            IdFormat::Ipv6RangeCidr { prefix_length: 64 },
            NameKind::Zone,
        ),
    ] {
        let text = format!(
            "{}zones: a.example\nsubscribers: {{1: 192.0.2.0/24}}\n",
            limit(id, rest)
        );
        let config = load(&[("limiter.yaml", text.as_bytes())]).unwrap();
        let limit = &config.policy.limits[0];
        assert_eq!((limit.id_format, limit.per_name), (format, Some(per_name)));
        assert_eq!(limit.matching.to_string(), "udp dport 53");
    }
}

#[test]
fn ids_that_are_no_pair() {
    for (id, rest, expected) in [
        (
            "[ipAddress]",
            "",
            "1:22: 'id' is one id, or two such as [ipAddress, zone], not a list of 1",
        ),
        (
            "[total, question]",
            "",
            "1:23: id total has no bucket for each name: write ipAddress, ipv4RangeCIDR, \
             ipv6RangeCIDR or regId before the name, or the name alone",
        ),
        (
            "[ipAddress, total]",
            "",
            "1:34: unknown id 'total', must be one of zone, domain, question",
        ),
        (
            "[ipv6RangeCIDR, question]",
            ", prefix-length: 96",
            "1:111: invalid prefix-length '96', must be from 16 to 64",
        ),
        (
            "[ipAddress, zone]",
            "",
            "1:10: Names needs a section 'zones' with the names of zones, or a file of them",
        ),
    ] {
        check(&limit(id, rest), &[expected]);
    }
    let text = format!(
        "{}overrides: {{'Names:2001:db8::1': {{burst: 1, count: 1, period: 1s}}}}\n",
        limit("[ipAddress, question]", "")
    );
    check(
        &text,
        &[
            "2:13: invalid id '2001:db8::1': beside a question, an IPv6 address counts by its /64: did \
             you mean '2001:db8::/64'?",
        ],
    );
}

#[test]
fn public_suffixes_are_in_a_file() {
    let text = format!(
        "{}public-suffixes: {{file: list.dat}}\n",
        limit("domain", "")
    );
    let load_with = |list: &str| {
        load(&[
            ("limiter.yaml", text.as_bytes()),
            ("list.dat", list.as_bytes()),
        ])
    };
    let config = load_with("// ours\ncom\n*.ck // all\n!www.ck\n\n公司.cn\ncom\n").unwrap();
    let suffixes = config
        .policy
        .public_suffixes
        .iter()
        .map(ToString::to_string);
    let suffixes: Vec<_> = suffixes.collect();
    assert_eq!(suffixes, ["*.ck", "com", "!www.ck", "xn--55qx5d.cn"]);
    for (list, why) in [
        (
            "com\na.*.b\n",
            "has no public suffix in line 2: it must have no '*' here",
        ),
        ("// none\n", "has no public suffix"),
    ] {
        assert_eq!(
            load_with(list).unwrap_err(),
            [format!("limiter.yaml:2:25: the file 'list.dat' {why}")]
        );
    }
    check(
        &format!("{}public-suffixes: {{}}\n", limit("domain", "")),
        &["2:18: needs 'file', the public suffix list"],
    );
}

#[test]
fn what_a_match_says_of_questions() {
    let text = limit(
        "total",
        ", match: {dns-name: ['*.Example.com', www.example.com.], dns-type: [any, 257, TYPE300, txt], \
         dns-opcode: [notify, 0], dns-rd: true, edns: false, destination-port: 5353}",
    );
    let config = load(&[("limiter.yaml", text.as_bytes())]).unwrap();
    let matching = &config.policy.limits[0].matching;
    assert_eq!(
        matching.dns,
        DnsMatch {
            names: vec![
                "*.example.com".parse().unwrap(),
                "www.example.com".parse().unwrap()
            ],
            types: vec![16, 255, 257, 300],
            opcodes: vec![0, 4],
            recursion_desired: Some(true),
            edns: Some(false),
        }
    );
    assert_eq!(
        matching.to_string(),
        "udp dport 5353 name *.example.com,www.example.com type TXT,ANY,CAA,TYPE300 opcode \
         query,notify rd yes edns no"
    );
}

#[test]
fn zones_that_are_wrong() {
    check(
        &limit("zone", ""),
        &["1:10: Names needs a section 'zones' with the names of zones, or a file of them"],
    );
    let zones = |zones: &str| format!("{}zones: {zones}\n", limit("zone", ""));
    check(&zones("[]"), &["2:8: no zones: name at least one"]);
    check(
        &zones("[a.example, A.Example.]"),
        &["2:20: duplicate zone 'a.example', first at 2:9"],
    );
    check(
        &zones("[a..b, '*.a', 'a b', bücher.example]"),
        &[
            "2:9: invalid name 'a..b', must have no empty label, and be '.' for the root",
            "2:15: invalid name '*.a', must have no '*' here",
            "2:22: invalid name 'a b', must consist of letters, digits, '-', '_', '/' and dots, not ' '",
            "2:29: invalid name 'bücher.example', must have its internationalized labels in the form in \
             which they are asked for, such as 'xn--bcher-kva' for 'bücher'",
        ],
    );
    check(
        &zones("{}"),
        &["2:8: needs 'file', the file with a zone on each line"],
    );
    let named = zones("{file: zones.txt}");
    for (file, why) in [
        (
            "a.example\nb..c\n",
            "has no zone in line 2: it must have no empty label, and be '.' for the root",
        ),
        ("# none\n", "has no zone"),
    ] {
        let files = [
            ("limiter.yaml", named.as_bytes()),
            ("zones.txt", file.as_bytes()),
        ];
        let errors = load(&files).unwrap_err();
        assert_eq!(
            errors,
            [format!("limiter.yaml:2:15: the file 'zones.txt' {why}")]
        );
    }
}

#[test]
fn matches_that_no_question_fits() {
    let wrong = |matching: &str, expected: &[&str]| {
        check(
            &limit("total", &format!(",\n match: {{{matching}}}")),
            expected,
        );
    };
    wrong(
        "dns-type: [A, a, NX]",
        &[
            "2:24: duplicate type 'A', first at 2:21",
            "2:27: unknown dns-type 'NX', did you mean 'NS'? (or a number, or such as TYPE257)",
        ],
    );
    wrong(
        "dns-opcode: 16, dns-rd: yes",
        &[
            "2:22: invalid dns-opcode '16', must be from 0 to 15",
            "2:34: unknown dns-rd 'yes', must be one of true, false",
        ],
    );
    wrong(
        "dns-name: a.*.example",
        &["2:20: invalid name 'a.*.example', must have no '*' here"],
    );
    wrong(
        "dns-type: A, protocol: tcp, state: new, fragments: count",
        &[
            "2:33: DNS questions are read in udp alone: leave 'protocol' out",
            "2:45: DNS questions are read in udp alone: leave 'state' out",
            "2:61: 'fragments' has no effect with 'state': later fragments are not counted",
            "2:61: 'fragments' has no effect: later fragments have no question",
        ],
    );
}

#[test]
fn costs_that_have_no_question() {
    let text =
        "limits: {Names: {id: question, cost: new-connections, burst: 1, count: 1, period: 1s}}\n";
    check(
        text,
        &[
            "1:22: id question is of packets with a DNS question, which cost new-connections does not count: \
           set 'cost' to packets, bytes or new-names",
        ],
    );
}
