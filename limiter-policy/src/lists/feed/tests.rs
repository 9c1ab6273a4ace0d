//! Shortened samples of published feeds.

use std::fmt::Write as _;

use ipnet::IpNet;

use super::{content::MAX_LINE, *};

/// Checks a file's detected format, its prefixes, and its bad lines as `line: message`. Naming the
/// format makes no difference.
#[track_caller]
fn check(text: &str, format: Format, expected: &[&str], bad: &[&str]) {
    let content = parse(text.as_bytes(), Format::Auto).expect("a feed");
    assert_eq!(content.format, format);
    let expected: Vec<IpNet> = expected.iter().map(|text| text.parse().unwrap()).collect();
    assert_eq!(content.prefixes, IpNet::aggregate(&expected));
    let reported = content.first_bad.iter();
    let reported: Vec<String> = reported
        .map(|bad| format!("{}: {}", bad.line, bad.message))
        .collect();
    assert_eq!(reported, bad);
    assert_eq!(content.bad, bad.len() as u64);
    assert_eq!(parse(text.as_bytes(), format), Ok(content));
}

#[track_caller]
fn refused(text: &[u8], format: Format, expected: &str) {
    let error = parse(text, format).expect_err("a refusal").to_string();
    assert_eq!(error, expected);
}

#[test]
fn firehol_netsets() {
    let text = "#\n# firehol_level1\n#\n# Maintainer      : FireHOL\n# Entries         : 4491\n#\n\
                0.0.0.0/8\n1.10.16.0/20\n5.134.128.0/19\r\n224.0.0.0/3\n203.0.113.7\n";
    check(
        text,
        Format::Plain,
        &[
            "0.0.0.0/8",
            "1.10.16.0/20",
            "5.134.128.0/19",
            "224.0.0.0/3",
            "203.0.113.7/32",
        ],
        &[],
    );
}

#[test]
fn tor_exits() {
    check(
        "192.42.116.16\n2001:67c:e60:c0c:192:42:116:16\n\n185.220.101.1\n",
        Format::Plain,
        &[
            "192.42.116.16/32",
            "2001:67c:e60:c0c:192:42:116:16/128",
            "185.220.101.1/32",
        ],
        &[],
    );
}

#[test]
fn spamhaus_drop_as_text() {
    let text = "; Spamhaus DROP List 2026/11/20 - (c) 2026 The Spamhaus Project SLU\n\
                ; Last-Modified: Fri, 20 Nov 2026 09:40:45 GMT\n\
                1.10.16.0/20 ; SBL256894\n2a0f:7a80::/29 ; SBL650413\n";
    check(
        text,
        Format::Plain,
        &["1.10.16.0/20", "2a0f:7a80::/29"],
        &[],
    );
}

#[test]
fn spamhaus_drop_as_json_lines() {
    let text = "{\"cidr\":\"1.10.16.0/20\",\"sblid\":\"SBL256894\",\"rir\":\"apnic\"}\n\
                {\"cidr\":\"2a0f:7a80::/29\",\"sblid\":\"SBL650413\",\"rir\":\"ripencc\"}\n\
                {\"asn\":213371,\"rir\":\"ripencc\"}\n\
                {\"cidr\":\"1.10.16.0\n\
                {\"type\":\"metadata\",\"timestamp\":1763629245,\"size\":1000,\"records\":2,\
                \"copyright\":\"(c) 2026 The Spamhaus Project SLU\"}\n";
    check(
        text,
        Format::JsonLines,
        &["1.10.16.0/20", "2a0f:7a80::/29"],
        &[
            "3: expected a JSON object with 'cidr'",
            "4: expected a JSON object with 'cidr'",
        ],
    );
}

#[test]
fn ranges() {
    let text = "# first - last\n192.0.2.1-192.0.2.6\n198.51.100.0 - 198.51.100.255 # a /24\n\
                2001:db8::-2001:db8::ff\n192.0.2.9-192.0.2.9\n";
    check(
        text,
        Format::Plain,
        &[
            "192.0.2.1/32",
            "192.0.2.2/31",
            "192.0.2.4/31",
            "192.0.2.6/32",
            "198.51.100.0/24",
            "2001:db8::/120",
            "192.0.2.9/32",
        ],
        &[],
    );
}

#[test]
fn bad_lines_are_located() {
    const EXPECTED: &str = "expected an address, prefix or range, such as '192.0.2.1', \
                            '192.0.2.0/24' or '192.0.2.1-192.0.2.9'";
    let text = "192.0.2.300\n192.0.2.0/24\n192.0.2.9-192.0.2.1\n0.0.0.0/0\n::-ffff:ffff:ffff:ffff:ffff:\
                ffff:ffff:ffff\n192.0.2.1-2001:db8::1\n192.0.2.0/28-192.0.2.9\n010.0.0.1\n\
                example.com\u{0}\n";
    let every = "it is every address: only the configuration may list that";
    let bad = [
        format!("1: invalid entry: {EXPECTED}"),
        "3: invalid entry: the range ends before it begins".to_owned(),
        format!("4: invalid entry: {every}"),
        format!("5: invalid entry: {every}"),
        "6: invalid entry: the range begins in one family and ends in the other".to_owned(),
        "7: invalid entry: a range must go from one address to another".to_owned(),
        "8: invalid entry: must have no leading zeros, which some programs read as octal"
            .to_owned(),
        format!("9: invalid entry: {EXPECTED}"),
    ];
    let bad: Vec<&str> = bad.iter().map(String::as_str).collect();
    check(text, Format::Plain, &["192.0.2.0/24"], &bad);
}

#[test]
fn addresses_are_read_as_programs_write_them() {
    check(
        "192.0.2.77/24\n2001:db8::1/32\n::ffff:203.0.113.5\n",
        Format::Plain,
        &["192.0.2.0/24", "203.0.113.5/32", "2001:db8::/32"],
        &[],
    );
}

#[test]
fn comments_may_be_in_any_encoding() {
    let bytes = b"\xef\xbb\xbf# liste noire\n192.0.2.1 # caf\xe9\ncaf\xe9\n";
    let content = parse(bytes, Format::Auto).unwrap();
    assert_eq!((content.entries, content.bad), (1, 1));
    assert_eq!(content.first_bad[0].line, 3);
    assert_eq!(content.first_bad[0].message, "is not UTF-8 text");
}

const DECISIONS: &str = r#"[
  {"duration":"3h59m12s","id":7,"origin":"CAPI","scenario":"ssh-bf","scope":"Ip","type":"ban","value":"192.0.2.1"},
  {"duration":"1h","id":8,"origin":"cscli","scope":"Range","type":"ban","value":"2001:db8::/48"},
  {"duration":"1h","id":9,"origin":"cscli","scope":"Ip","type":"captcha","value":"192.0.2.2"},
  {"duration":"1h","id":10,"origin":"cscli","scope":"Country","type":"ban","value":"XY"},
  {"duration":"-12m","id":11,"origin":"cscli","scope":"Ip","type":"ban","value":"192.0.2.3"},
  {"duration":"1h","id":12,"simulated":true,"scope":"Ip","type":"ban","value":"192.0.2.4"},
  {"duration":"1h","id":13,"scope":"Ip","type":"ban","value":"192.0.2"},
  17
]"#;

#[test]
fn crowdsec_s_decisions() {
    check(
        DECISIONS,
        Format::CrowdSec,
        &["192.0.2.1/32", "2001:db8::/48"],
        &[
            "8: invalid entry: expected an address, prefix or range, such as \
             '192.0.2.1', '192.0.2.0/24' or '192.0.2.1-192.0.2.9'",
            "9: expected a decision with 'type', 'scope' and 'value'",
        ],
    );
}

#[test]
fn crowdsec_s_stream_and_alerts() {
    let ban = |value: &str| {
        format!(r#"{{"id":1,"scope":"ip","type":"ban","duration":"4h","value":"{value}"}}"#)
    };
    let (one, two) = (ban("192.0.2.1"), ban("192.0.2.2"));
    for (text, expected) in [
        (
            format!(r#"{{"deleted":[{two}],"new":[{one}]}}"#),
            &["192.0.2.1/32"][..],
        ),
        (r#"{"deleted":null,"new":null}"#.to_owned(), &[]),
        (
            format!(
                "[\n {{\"id\": 1, \"source\": {{\"scope\": \"Ip\"}}, \"decisions\": [{one}]}},\n \
                 {{\"id\": 2, \"decisions\": null}},\n {{\"id\": 3, \"decisions\": [{two}]}}\n]"
            ),
            &["192.0.2.1/32", "192.0.2.2/32"],
        ),
        ("null\n".to_owned(), &[]),
        ("[]".to_owned(), &[]),
    ] {
        check(&text, Format::CrowdSec, expected, &[]);
    }
}

#[test]
fn ipset_save() {
    let text = "create blocked hash:net family inet hashsize 1024 maxelem 65536 timeout 300 \
                bucketsize 12 initval 0x1\n\
                create blocked6 hash:net family inet6 hashsize 1024 maxelem 65536\n\
                add blocked 192.0.2.0/24 timeout 272\n\
                add blocked 198.51.100.1-198.51.100.2\n\
                add blocked 192.0.2.5 nomatch\n\
                add blocked6 2001:db8::/32 comment \"nomatch is a word\"\n\
                add ports 192.0.2.1,tcp:80\n\
                flush blocked\n";
    check(
        text,
        Format::Ipset,
        &[
            "192.0.2.0/24",
            "198.51.100.1/32",
            "198.51.100.2/32",
            "2001:db8::/32",
        ],
        &[
            "5: it is an exception ('nomatch'), which lists cannot have",
            "7: invalid entry: expected an address, prefix or range, such as \
             '192.0.2.1', '192.0.2.0/24' or '192.0.2.1-192.0.2.9'",
            "8: expected 'create' or 'add'",
        ],
    );
}

#[test]
fn what_is_no_feed_is_refused() {
    let empty = "it is empty; if the list should have no addresses, write a comment, '#'";
    refused(b"", Format::Auto, empty);
    refused(b"\xef\xbb\xbf \n\n", Format::Plain, empty);
    let mut long = b"192.0.2.1\n".to_vec();
    long.resize(long.len() + MAX_LINE + 1, b'#');
    refused(&long, Format::Auto, "line 2 is longer than 64 KiB");
    refused(
        br#"{"message": "access forbidden"}"#,
        Format::Auto,
        "expected CrowdSec's decisions, found another JSON object: write its addresses one a line",
    );
    refused(
        b"[{\"id\": 1,\n \"type\": ",
        Format::Auto,
        "line 2, column 9: expected CrowdSec's decisions: it ends too early",
    );
    refused(
        b"192.0.2.1\n",
        Format::CrowdSec,
        "line 1, column 5: expected CrowdSec's decisions: it has another form",
    );
}

#[test]
fn json_of_other_publishers_is_named() {
    let check = |text: &str, expected: &str| {
        let expected = format!("expected CrowdSec's decisions, found {expected}");
        refused(text.as_bytes(), Format::Auto, &expected);
        refused(text.as_bytes(), Format::CrowdSec, &expected);
    };
    check(
        "{\n  \"syncToken\": \"1763629245\",\n  \"createDate\": \"2026-11-20-09-40-45\",\n  \
         \"prefixes\": [{\"ip_prefix\": \"192.0.2.0/24\", \"region\": \"eu-south-2\"}],\n  \
         \"ipv6_prefixes\": []\n}",
        "AWS's ip-ranges.json: write its addresses one a line, with `jq -r '.prefixes[].ip_prefix, \
         .ipv6_prefixes[].ipv6_prefix'`",
    );
    check(
        r#"{"syncToken":"1","creationTime":"2026-11-20","prefixes":[{"ipv4Prefix":"192.0.2.0/24"}]}"#,
        "Google's list of prefixes: write its addresses one a line, with `jq -r '.prefixes[] | \
         .ipv4Prefix // .ipv6Prefix'`",
    );
    check(
        r#"{"meta":{"generatedAt":"2026-11-20"},"data":[{"ipAddress":"192.0.2.1"}]}"#,
        "AbuseIPDB's blacklist: write its addresses one a line, with `jq -r '.data[].ipAddress'`",
    );
    let other = "another JSON object: write its addresses one a line";
    check(r#"{"a\u001b":1,"b":2}"#, other);
    check("{}", other);
}

/// A comment in the first line is not the whole file.
#[test]
fn lines_may_end_in_carriage_returns() {
    let prefixes = &["192.0.2.1/32", "192.0.2.3/32"];
    for end in ["\n", "\r", "\r\n"] {
        let text = ["# a feed", "192.0.2.1", "", "what?", "192.0.2.3 # two", ""].join(end);
        let bad = "4: invalid entry: expected an address, prefix or range, such as \
                   '192.0.2.1', '192.0.2.0/24' or '192.0.2.1-192.0.2.9'";
        check(&text, Format::Plain, prefixes, &[bad]);
        let text = ["create s hash:ip", "add s 192.0.2.1", "add s 192.0.2.3"].join(end);
        check(&text, Format::Ipset, prefixes, &[]);
        let text = [r#"{"cidr":"192.0.2.1"}"#, r#"{"cidr":"192.0.2.3"}"#].join(end);
        check(&text, Format::JsonLines, prefixes, &[]);
        check(&format!("null{end}"), Format::CrowdSec, &[], &[]);
    }
}

#[test]
fn columns_after_tabs() {
    // DShield's block list, and a list with scores.
    let text = "# start\tend\tnetmask\tattacks\n192.0.2.0\t192.0.2.255\t24\t2011\tA-NET\tXY\n\
                198.51.100.1\t87\t2026-11-20\n203.0.113.0/25\tbot-net\n2001:db8::\t2001:db8::f\n\
                198.51.100.8\t-\t198.51.100.9\n198.51.100.7\t-\tscanner\n";
    check(
        text,
        Format::Plain,
        &[
            "192.0.2.0/24",
            "198.51.100.1/32",
            "203.0.113.0/25",
            "2001:db8::/124",
            "198.51.100.8/31",
            "198.51.100.7/32",
        ],
        &[],
    );
    // Two addresses in the wrong order, a prefix before one, or the ends of a connection are not a range.
    let text = "192.0.2.9\t192.0.2.1\n192.0.2.0/28\t192.0.2.255\n192.0.2.1\n\
                192.0.2.1\t198.51.100.255\t443\n2001:db8::\t2001:db8::e\n";
    let none =
        "no prefix begins and ends with these addresses; write a range as '192.0.2.1-192.0.2.9'";
    check(
        text,
        Format::Plain,
        &["192.0.2.1/32"],
        &[
            "1: invalid entry: the range ends before it begins",
            "2: invalid entry: a range must go from one address to another",
            &format!("4: invalid entry: {none}"),
            &format!("5: invalid entry: {none}"),
        ],
    );
}

/// Otherwise a feed's owner could link it to a file that only root may read, and read its content in the log.
#[test]
fn no_error_shows_anything_of_the_file() {
    const SECRET: &str = "5ec2e7c0ffee5ec2e7c0ffee5ec2e7c0";
    let quoted = format!("{SECRET:?}");
    for text in [
        SECRET.to_owned(),
        format!("{SECRET}-{SECRET}"),
        format!("::ffff:1.2.3.4%{SECRET}"),
        format!("create {SECRET} x\nadd {SECRET} {SECRET}\nadd a {SECRET} nomatch\n{SECRET}\n"),
        format!("{{\"cidr\":{quoted}}}\n{{\"key\":{quoted}}}\n{quoted}\n"),
        format!(
            "[{quoted},{{\"type\":{quoted}}},{{\"type\":\"ban\",\"scope\":\"ip\",\"value\":{quoted}}}]"
        ),
        format!("{{{quoted}: 1}}"),
        format!("[{SECRET}]"),
        format!("{{\"new\": {quoted}}}"),
    ] {
        for format in [
            Format::Auto,
            Format::Plain,
            Format::JsonLines,
            Format::CrowdSec,
            Format::Ipset,
        ] {
            let reported = match parse(text.as_bytes(), format) {
                Ok(content) => format!("{:?}", content.first_bad),
                Err(error) => error.to_string(),
            };
            assert!(
                !reported.contains("5ec"),
                "{format:?} of {text}: {reported}"
            );
        }
    }
}

#[test]
fn only_the_first_bad_lines_are_kept() {
    let content = parse("x\n".repeat(1_000).as_bytes(), Format::Plain).unwrap();
    assert_eq!((content.entries, content.bad), (0, 1_000));
    assert_eq!(content.first_bad.len(), 10);
}

/// All addresses in pieces are still all addresses.
#[test]
fn everything_is_refused_in_pieces_too() {
    let v4 = "it covers every IPv4 address: only the configuration may list that";
    let v6 = "it covers every IPv6 address: only the configuration may list that";
    refused(b"0.0.0.0/1\n128.0.0.0/1\n", Format::Plain, v4);
    refused(
        b"128.0.0.0-255.255.255.255\n0.0.0.0-128.0.0.9\n",
        Format::Plain,
        v4,
    );
    refused(b"add x 0.0.0.0/1\nadd x 128.0.0.0/1\n", Format::Ipset, v4);
    refused(
        b"{\"cidr\":\"::/1\"}\n{\"cidr\":\"8000::/1\"}\n",
        Format::JsonLines,
        v6,
    );
    let all_but_one = "0.0.0.0/1\n128.0.0.0-255.255.255.254\n";
    assert_eq!(
        parse(all_but_one.as_bytes(), Format::Plain)
            .unwrap()
            .prefixes
            .len(),
        32
    );
}

#[test]
fn entries_become_as_few_prefixes_as_possible() {
    let mut text = String::new();
    // In reverse, with gaps that are filled later.
    for last in (0..=255).rev().filter(|last| last % 2 == 0) {
        writeln!(text, "192.0.2.{last}").unwrap();
    }
    for last in (0..=255).filter(|last| last % 2 == 1) {
        writeln!(text, "192.0.2.{last}\n192.0.2.{last}/31").unwrap();
    }
    let content = parse(text.as_bytes(), Format::Plain).unwrap();
    assert_eq!(content.entries, 384);
    assert_eq!(content.prefixes, ["192.0.2.0/24".parse::<IpNet>().unwrap()]);
}

/// Addresses that never touch, in IPv4, or as IPv6 ranges of some 120 prefixes each.
#[test]
fn a_feed_of_too_many_prefixes_is_refused() {
    const MOST: u32 = 1_000;
    let read = |text: &str, format| parse_at_most(text.as_bytes(), format, MOST as usize);
    let refused = |text: &str, format| {
        assert_eq!(read(text, format), Err(ParseError::TooManyPrefixes));
    };
    let reported = "it has more than 1 048 576 prefixes, the maximum for a feed";
    assert_eq!(ParseError::TooManyPrefixes.to_string(), reported);
    let mut ranges = String::new();
    for number in 0..20 {
        writeln!(
            ranges,
            "2001:db8:{number:x}::1-2001:db8:{number:x}:7fff:ffff:ffff:ffff:fffe"
        )
        .unwrap();
    }
    refused(&ranges, Format::Plain);
    let address = |number: u32| std::net::Ipv4Addr::from(number * 3);
    let lines = |most: u32| (0..most).map(|number| format!("{}\n", address(number)));
    let text: String = lines(MOST).collect();
    let prefixes = read(&text, Format::Plain).unwrap().prefixes;
    assert_eq!(prefixes.len(), MOST as usize);
    refused(&lines(MOST + 1).collect::<String>(), Format::Plain);
    // Reading stops at twice as many, so the rest of the file does not matter.
    let text: String = lines(2 * MOST).collect();
    let too_long = "x".repeat(MAX_LINE + 1);
    refused(&format!("{text}{too_long}"), Format::Plain);
    let decisions = (0..2 * MOST).map(|number| {
        let address = address(number);
        format!(r#"{{"scope":"ip","type":"ban","value":"{address}"}}"#)
    });
    let decisions = decisions.collect::<Vec<_>>().join(",");
    let alert = format!(r#"[{{"decisions":[{decisions}]}}, no JSON"#);
    refused(&alert, Format::CrowdSec);
}
