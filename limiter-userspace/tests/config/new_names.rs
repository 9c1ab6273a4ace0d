//! Limits on new names, and how many names are cached for how long.

use limiter_common::limit::{Cost, IdFormat, NameKind};
use limiter_policy::policy::CachedNames;

use super::harness::{check_positions as check, read};

/// Returns a configuration with one limit of this id and these fields, and the sections it needs.
fn limit(id: &str, rest: &str) -> String {
    let mut text = format!(
        "limits: {{New: {{id: {id}, cost: new-names, burst: 9, count: 9, period: 1s{rest}}}}}\n"
    );
    for (named, section) in [
        ("zone", "zones: [a.example]\n"),
        ("regId", "subscribers: {1: 192.0.2.0/24}\n"),
    ] {
        if id.contains(named) {
            text += section;
        }
    }
    text
}

#[test]
fn ids_and_what_is_counted() {
    for (id, format, per_name) in [
        ("zone", IdFormat::Zone, None),
        ("total", IdFormat::Total, None),
        ("regId", IdFormat::RegId, None),
        ("[regId, zone]", IdFormat::RegId, Some(NameKind::Zone)),
    ] {
        let rest = ", match: {dns-type: A, dns-rd: false}, deny: truncate";
        let policy = read(&limit(id, rest));
        let limit = &policy.limits[0];
        assert_eq!((limit.id_format, limit.per_name), (format, per_name));
        assert_eq!(limit.cost, Cost::NewNames);
        // The protocol and port default to DNS.
        assert!(limit.counts_by_question());
        assert_eq!(limit.protocols(), [17]);
        assert_eq!(limit.matching.destination_ports, [53..=53]);
        assert_eq!(policy.cached_names, CachedNames::default());
    }
}

#[test]
fn ids_with_a_bucket_for_whatever_a_forger_makes_up() {
    for id in [
        "ipAddress",
        "ipv4RangeCIDR",
        "ipv6RangeCIDR",
        "destination",
        "domain",
        "question",
        "[ipAddress, zone]",
        "[regId, domain]",
    ] {
        let expected = format!(
            "1:20: id {id} has a bucket for whatever a forger makes up, so cost new-names would bound \
             nothing: set 'id' to zone, total, regId or [regId, zone]"
        );
        check(&limit(id, ""), &[&expected]);
    }
}

#[test]
fn matches_and_rates_that_new_names_have_not() {
    check(
        "limits: {New: {id: total, cost: new-names, burst: 9, count: 9, period: 1s, match: {protocol: tcp}}}\n",
        &["1:94: DNS questions are read in udp alone: leave 'protocol' out"],
    );
    check(
        "limits: {New: {id: total, cost: new-names, count: auto}}\n",
        &[
            "1:44: 'count: auto' is not for cost new-names: an overloaded host loses packets, whatever \
             they ask for",
        ],
    );
}

#[test]
fn how_many_names_are_known_and_for_how_long() {
    for (known, capacity, hours, lines) in [
        ("{}", 1 << 20, 24, 1 << 17),
        ("{capacity: 1024}", 1_024, 24, 128),
        ("{capacity: 9000, for: 30d}", 9_000, 720, 2_048),
        ("{capacity: 134217728, for: 2h}", 1 << 27, 2, 1 << 24),
    ] {
        let cached_names = read(&format!(
            "{}names: {{known: {known}}}\n",
            limit("total", "")
        ))
        .cached_names;
        let cached_for_ns = hours * 3_600_000_000_000;
        assert_eq!(
            cached_names,
            CachedNames {
                capacity,
                cached_for_ns
            }
        );
        assert_eq!(cached_names.lines(), lines);
    }
    for (text, expected) in [
        (
            "names: {known: {capacity: 1023, for: 59s}}\n",
            &[
                "1:27: invalid capacity '1023', must be from 1024 to 134217728",
                "1:38: invalid for '59s', must be from 1m to 720h",
            ][..],
        ),
        (
            "names: {known: 5}\n",
            &["1:16: expected a map such as {capacity: 1048576, for: 24h}, found the number '5'"],
        ),
    ] {
        check(text, expected);
    }
}
