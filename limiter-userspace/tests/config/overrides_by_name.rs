//! Overrides for zones, domains, questions and server names.

use std::fmt::Write as _;

use super::harness::{check, load};

const RATE: &str = "{burst: 7, count: 7, period: 1s}";

/// The limits on names, of each kind, and the sections that they need.
const LIMITS: &str = "\
zones: [example.com, '1001', .]
server-names: [shop.example]
subscribers: {1001: 192.0.2.0/28}
public-suffixes: {file: list.dat}
limits:
  Zones: {id: zone, cost: packets, rate: 9/s}
  Domains: {id: domain, cost: packets, rate: 9/s}
  Questions: {id: question, cost: packets}
  Names: {id: server-name, cost: packets, rate: 9/s}
  Sources: {id: [ipAddress, zone], cost: packets, rate: 9/s}
  Ranges: {id: [ipv6RangeCIDR, domain], prefix-length: 56, cost: packets}
  Customers: {id: [regId, question], cost: packets, rate: 9/s}
overrides:
";

const SUFFIXES: &str = "com\nuk\nco.uk\n*.ck\n";

/// Returns the errors of these overrides, by limit and id, each in a line from the 14th on; or the ids as they
/// were read.
fn read(overrides: &[&str]) -> Result<Vec<String>, Vec<String>> {
    let mut text = LIMITS.to_owned();
    for key in overrides {
        writeln!(text, "  {key}: {RATE}").expect("a text grows");
    }
    // A limit without a rate needs an override.
    for (name, id) in [("Questions", "other.example A"), ("Ranges", "other.com")] {
        writeln!(text, "  {name}:{id}: {RATE}").expect("a text grows");
    }
    let files = [
        ("limiter.yaml", text.as_bytes()),
        ("list.dat", SUFFIXES.as_bytes()),
    ];
    let limits = load(&files)?.policy.limits;
    let ids = limits.iter().flat_map(|limit| {
        let ids = limit.overrides.iter().map(|other| other.id.to_string());
        ids.map(|id| format!("{}:{id}", limit.name))
    });
    Ok(ids.filter(|id| !id.contains(":other.")).collect())
}

#[test]
fn names_alone_and_beside_sources() {
    let ids = [
        "Customers:1001",
        "Customers:a.example AAAA",
        "Customers:1001:a.example AAAA",
        "Domains:a.b.ck",
        "Domains:example.co.uk",
        "Domains:unlisted.example",
        "Names:shop.example",
        "Questions:. NS",
        "Questions:www.example.com TYPE300",
        "Ranges:2001:db8::/56",
        "Ranges:example.com",
        "Ranges:2001:db8::/56:example.com",
        "Sources:192.0.2.0/24",
        "Sources:2001:db8::/32",
        "Sources:.",
        "Sources:1001.",
        "Sources:example.com",
        "Sources:192.0.2.7:example.com",
        "Sources:2001:db8::/64:1001",
        "Zones:.",
        "Zones:1001.",
        "Zones:example.com",
    ];
    assert_eq!(read(&ids), Ok(ids.map(ToOwned::to_owned).to_vec()));
    // In any spelling.
    let read = read(&[
        "Questions:WWW.Example.com. class3 txt",
        "Ranges:2001:DB8:0::/56:Example.COM.",
        "Zones:Example.com.",
        "Zones:1001",
    ]);
    let expected = [
        "Questions:www.example.com CLASS3 TXT",
        "Ranges:2001:db8::/56:example.com",
        "Zones:1001.",
        "Zones:example.com",
    ];
    assert_eq!(read, Ok(expected.map(ToOwned::to_owned).to_vec()));
}

#[test]
fn ids_that_are_no_names() {
    for (key, why) in [
        (
            "Zones:www.example.com",
            "invalid id 'www.example.com', no such zone: name it in 'zones', too",
        ),
        (
            "Zones:example.com A",
            "invalid id 'example.com A', expected a zone, such as 'example.com'",
        ),
        (
            "Zones:192.0.2.7:example.com",
            "invalid id '192.0.2.7:example.com', must consist of letters, digits, '-', '_', '/' and dots, not ':'",
        ),
        (
            "Zones:'*.example.com'",
            "invalid id '*.example.com', must have no '*' here",
        ),
        (
            "Names:api.example",
            "invalid id 'api.example', no such server name: name it in 'server-names', too",
        ),
        (
            "Domains:co.uk",
            "invalid id 'co.uk', a public suffix, below which domains are registered",
        ),
        (
            "Domains:b.ck",
            "invalid id 'b.ck', a public suffix, below which domains are registered",
        ),
        (
            "Domains:www.example.co.uk",
            "invalid id 'www.example.co.uk', must be a registered domain: did you mean 'example.co.uk', which has it?",
        ),
        (
            "Questions:www.example.com",
            "invalid id 'www.example.com', expected a name and a type, such as 'www.example.com A'",
        ),
        (
            "Questions:www.example.com Z",
            "invalid id 'www.example.com Z', must be a name, or a name and a type, such as 'www.example.com A'",
        ),
        (
            "Sources:2001:db8::7",
            "invalid id '2001:db8::7': beside a zone, an IPv6 address counts by its /64: did you mean '2001:db8::/64'?",
        ),
        (
            "Sources:2001:db8::7:example.com",
            "invalid id '2001:db8::7:example.com': beside a zone, an IPv6 address counts by its /64: did you mean '2001:db8::/64:example.com'?",
        ),
        (
            "Sources:192.0.2.7/24:example.com",
            "invalid id '192.0.2.7/24', must have no host bits set, did you mean '192.0.2.0/24'?",
        ),
        (
            "Sources:1001:example.com",
            "invalid id '1001', expected an IPv4 or IPv6 address or prefix, such as '192.0.2.1' or '2001:db8::/64'",
        ),
        (
            "Sources:192.0.2.7:example.org",
            "invalid id 'example.org', no such zone: name it in 'zones', too",
        ),
        (
            "Ranges:2001:db8::/48:example.com",
            "invalid id '2001:db8::/48', expected an IPv6 /56 range, such as '2001:db8:1::/56'",
        ),
        (
            "Customers:1002:a.example A",
            "invalid id '1002', no subscriber has this number",
        ),
        (
            "Customers:0",
            "invalid id '0', expected a subscriber's number, such as '1001'",
        ),
        (
            "Customers:a.example",
            "invalid id 'a.example', expected a subscriber's number, such as '1001'; or a name and a type, such as 'www.example.com A'; or both, with a colon between",
        ),
    ] {
        let key = if key.contains('\'') {
            format!("'{}'", key.replace('\'', ""))
        } else {
            key.to_owned()
        };
        let expected = format!("limiter.yaml:14:3: {why}");
        assert_eq!(read(&[&key]), Err(vec![expected]), "{key}");
    }
    assert_eq!(
        read(&[
            "Sources:192.0.2.7:example.com",
            "Sources:192.0.2.7:Example.com."
        ]),
        Err(vec![
            "limiter.yaml:15:3: duplicate id '192.0.2.7:Example.com.' of Sources, first at 14:3"
                .to_owned()
        ])
    );
}

/// In Boulder's form, with comments.
#[test]
fn names_in_a_list() {
    let text = "\
zones: [example.com]
limits: {Zones: {id: [ipAddress, zone], cost: packets, rate: 9/s}}
overrides:
  - Zones:
      burst: 7
      count: 7
      period: 1s
      ids:
        - id: 192.0.2.7:example.com
          comment: asks much
        - example.com
        - 192.0.2.0/24:www.example.com
";
    check(
        text,
        &["12:11: invalid id 'www.example.com', no such zone: name it in 'zones', too"],
    );
    let text = text.replace(":www.", ":");
    let policy = load(&[("limiter.yaml", text.as_bytes())]).unwrap().policy;
    let overrides = policy.limits[0].overrides.iter();
    let read: Vec<_> = overrides
        .map(|other| (other.id.to_string(), other.comment.as_deref()))
        .collect();
    let expected = [
        ("example.com", None),
        ("192.0.2.0/24:example.com", None),
        ("192.0.2.7:example.com", Some("asks much")),
    ];
    assert_eq!(read, expected.map(|(id, comment)| (id.to_owned(), comment)));
}

#[test]
fn a_name_that_is_left_out() {
    check(
        "zones: a\nlimits: {Zones: {id: zone, cost: packets}}\noverrides: {Zones: {burst: 1, count: 1, period: 1s}}\n",
        &["3:13: missing id, expected 'Zones:' followed by a zone, such as 'example.com'"],
    );
    check(
        "zones: a\nlimits: {Zones: {id: zone, cost: packets}}\n",
        &["2:10: Zones limits nothing: it needs burst, count and period, or rate, or overrides"],
    );
}
