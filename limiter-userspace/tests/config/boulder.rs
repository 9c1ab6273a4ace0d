//! Boulder's limit names and ids: the ones that have a meaning for packets, and the others.

use std::fmt::Write as _;

use limiter_common::limit::{IPV6_RANGE, IdFormat, NameKind};

use super::harness::{check, load};

const RATE: &str = "{burst: 7, count: 7, period: 1s}";

/// A Boulder limit: its name, its id, an override's id, and the key that its buckets have here.
type Meaning = (&'static str, &'static str, &'static str, Keys);
type Keys = (IdFormat, Option<NameKind>);

/// Limits by a key that packets carry.
const LIMITS: [Meaning; 7] = [
    (
        "NewRegistrationsPerIPAddress",
        "ipAddress",
        "192.0.2.7",
        (IdFormat::IpAddress, None),
    ),
    (
        "LimitOverrideRequestsPerIPAddress",
        "ipAddress",
        "2001:db8::7",
        (IdFormat::IpAddress, None),
    ),
    (
        "NewRegistrationsPerIPv6Range",
        "ipv6RangeCIDR",
        "2001:db8:1::/48",
        (
            IdFormat::Ipv6RangeCidr {
                prefix_length: IPV6_RANGE,
            },
            None,
        ),
    ),
    (
        "NewOrdersPerAccount",
        "regId",
        "12345678",
        (IdFormat::RegId, None),
    ),
    (
        "CertificatesPerDomain",
        "domain",
        "example.com",
        (IdFormat::Domain, None),
    ),
    (
        "CertificatesPerDomainPerAccount",
        "regId:domain",
        "12345678:example.com",
        (IdFormat::RegId, Some(NameKind::Domain)),
    ),
    (
        "CertificatesPerFQDNSet",
        "fqdnSet",
        "www.example.com A",
        (IdFormat::Question, None),
    ),
];

/// Limits by a key that no packet carries, such as an account.
const WITHOUT: [&str; 2] = [
    "FailedAuthorizationsPerDomainPerAccount",
    "FailedAuthorizationsForPausingPerDomainPerAccount",
];

/// The sections that these limits need.
const BESIDE: &str = "subscribers: {12345678: 192.0.2.0/28}\npublic-suffixes: {file: list.dat}\n";

/// Returns a file that defines the limits under Boulder's ids, and their overrides.
fn defined() -> String {
    let mut text = format!("{BESIDE}limits:\n");
    for (name, id, _, _) in LIMITS {
        writeln!(text, "  {name}: {{id: {id}, cost: packets, rate: 9/s}}").expect("a text grows");
    }
    text += "overrides:\n";
    for (name, _, id, _) in LIMITS {
        writeln!(text, "  {name}:{id}: {RATE}").expect("a text grows");
    }
    text
}

#[test]
fn limits_with_boulder_s_names_and_ids() {
    let text = defined();
    let files = [
        ("limiter.yaml", text.as_bytes()),
        ("list.dat", b"com\n".as_slice()),
    ];
    let policy = load(&files).unwrap().policy;
    assert_eq!(policy.limits.len(), LIMITS.len());
    for (name, _, id, keys) in LIMITS {
        let limit = policy.limits.iter().find(|limit| limit.name == name);
        let limit = limit.unwrap();
        assert_eq!((limit.id_format, limit.per_name), keys, "{name}");
        let [one] = &limit.overrides[..] else {
            panic!("{name}: {:?}", limit.overrides);
        };
        assert_eq!(one.id.to_string(), id, "{name}");
    }
}

/// A limit with a Boulder name still needs an `id`: the name alone defines no limit for packets.
#[test]
fn boulder_s_file_as_it_is() {
    for (name, id, of_override, _) in LIMITS {
        let why = format!(
            "unknown limit '{name}': what Boulder counts by it is in no packet; to limit packets of the same \
             keys, give it 'id: {id}', a 'cost' and a rate for that"
        );
        check(
            &format!("limits:\n  {name}: {RATE}\n"),
            &[&format!("2:3: {why}")],
        );
        check(
            &format!("overrides:\n  {name}:{of_override}: {RATE}\n"),
            &[&format!("2:3: {why}")],
        );
    }
    for name in WITHOUT {
        let why =
            format!("'{name}' has no meaning here: no packet shows whether a validation failed");
        check(
            &format!("limits:\n  {name}: {RATE}\n"),
            &[&format!("2:3: {why}")],
        );
        check(
            &format!(
                "overrides: [{{{name}: {{burst: 7, count: 7, period: 1s, ids: ['1:a.b']}}}}]\n"
            ),
            &[&format!("1:14: {why}")],
        );
    }
}

#[test]
fn a_set_of_one_name() {
    let limit = "limits: {Set: {id: fqdnSet, cost: packets, rate: 9/s}}\noverrides:\n";
    for (id, why) in [
        (
            "a.example,b.example",
            "a query asks for one name: give each an override of its own, such as 'www.example.com A'",
        ),
        (
            "a.example",
            "expected a name and a type, such as 'www.example.com A'",
        ),
    ] {
        check(
            &format!("{limit}  Set:{id}: {RATE}\n"),
            &[&format!("3:3: invalid id '{id}', {why}")],
        );
    }
}
