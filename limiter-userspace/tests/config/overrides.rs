//! The section `overrides`, and its ids.

use super::harness::{check, load};

/// Checks the errors of an override's id in `ids`.
#[track_caller]
fn check_id(limit: &str, id: &str, expected: &[&str]) {
    let expected: Vec<String> = expected
        .iter()
        .map(|message| format!("7:11: {message}"))
        .collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    check(
        &format!(
            "overrides:\n  - {limit}:\n      burst: 2000\n      count: 5\n      period: 1s\n      \
             ids:\n        - {id}\n"
        ),
        &expected,
    );
}

#[test]
fn both_forms_of_overrides_say_the_same() {
    let map = "overrides:
  PacketsPerIPAddress:10.0.0.1: {burst: 9, count: 8, period: 1s}
  PacketsPerIPv6Range:2001:db8:1::/48: {burst: 7, count: 6, period: 1s}
  PacketsPerIPAddress:2001:db8::: {burst: 9, count: 8, period: 1s}
";
    let list = "overrides:
  - PacketsPerIPAddress: {burst: 9, count: 8, period: 1s, ids: ['2001:db8::', 10.0.0.1]}
  - PacketsPerIPv6Range: {burst: 7, count: 6, period: 1s, ids: [{id: '2001:db8:1::/48'}]}
";
    let from_map = load(&[("limiter.yaml", map.as_bytes())]).unwrap();
    assert_eq!(from_map.policy.limits.len(), 2);
    assert_eq!(Ok(from_map), load(&[("limiter.yaml", list.as_bytes())]));
}

#[test]
fn overrides_as_a_map() {
    check(
        "overrides:
  PacketsPerIPAddress: {burst: 1, count: 1, period: 1s}
  PacketsPerIPAdress:10.0.0.1: {burst: 1, count: 1, period: 1s}
  'PacketsPerIPAddress:': {burst: 1, count: 1, period: 1s}
  PacketsPerIPAddress:10.0.0.1: {burst: 0, count: 1, period: 1s}
  PacketsPerIPAddress:2001:db8::1: {burst: 1, count: 1, period: 1s}
  PacketsPerIPAddress:2001:DB8:0::1: {burst: 1, count: 1, period: 1s}
  PacketsPerIPAddress:10.0.0.1: {burst: 1, count: 1, period: 1s}
  PacketsPerIPv6Range:2001:db8:1::5/48: {count: 1, period: 1s}
  PacketsPerIPAddress:10.0.0.9: {burst: 1, count: 1, period: 1s, ids: []}
",
        &[
            "2:3: missing id, expected 'PacketsPerIPAddress:' followed by an IPv4 or IPv6 address \
             or prefix, such as '192.0.2.1' or '2001:db8::/64'",
            "3:3: unknown limit 'PacketsPerIPAdress', did you mean 'PacketsPerIPAddress'?",
            "4:3: invalid id '', expected an IPv4 or IPv6 address or prefix, such as '192.0.2.1' \
             or '2001:db8::/64'",
            "5:41: invalid burst '0', must be > 0: to refuse everybody, use 'block'",
            "7:3: duplicate id '2001:DB8:0::1' of PacketsPerIPAddress, first at 6:3",
            "8:3: duplicate 'PacketsPerIPAddress:10.0.0.1', first at 5:3",
            "9:3: missing field 'burst'",
            "9:3: invalid id '2001:db8:1::5/48', must have no host bits set, did you mean \
             '2001:db8:1::/48'?",
            "10:66: unknown field 'ids', must be one of burst, count, period, rate",
        ],
    );
}

#[test]
fn overrides_as_a_list() {
    check(
        "overrides:
  - PacketsPerIPAddress: {burst: 1, count: 1, period: 1s}
  - PacketsPerIPAddress: {burst: 1, count: 1, period: 1s, ids: []}
  - PacketsPerIPAddress: {burst: 1, count: 1, period: 1s, ids: 10.0.0.1}
  - PacketsPerIPAddress:10.0.0.1: {burst: 1, count: 1, period: 1s, ids: [10.0.0.1]}
  - {}
  - 10.0.0.1
  - PacketsPerIPAddress:
  - PacketsPerIPAddress: {burst: 1, count: 1, period: 1s, id: [10.0.0.1]}
",
        &[
            "2:5: missing field 'ids'",
            "3:64: no ids: name at least one",
            "5:5: unknown limit 'PacketsPerIPAddress:10.0.0.1', did you mean \
             'PacketsPerIPAddress' with 'ids: [10.0.0.1]'?",
            "6:5: expected a limit's name with burst, count, period and ids, found an empty \
             mapping",
            "7:5: expected a limit's name with burst, count, period and ids, found the text \
             '10.0.0.1'",
            "8:24: expected burst, count, period and ids, found nothing",
            "9:59: unknown field 'id', did you mean 'ids'?",
        ],
    );
}

#[test]
fn ids() {
    let address = "PacketsPerIPAddress";
    let wanted =
        "expected an IPv4 or IPv6 address or prefix, such as '192.0.2.1' or '2001:db8::/64'";
    for id in [
        "10.0.0.1",
        "'10.0.0.1'",
        "::1",
        "{id: 10.0.0.1}",
        "255.255.255.255",
        "10.0.0.0/24",
        "128.0.0.0/1",
        "2001:db8::/127",
    ] {
        check_id(address, id, &[]);
    }
    check_id(
        address,
        "10.0.0",
        &[&format!("invalid id '10.0.0', {wanted}")],
    );
    check_id(address, "10", &[&format!("invalid id '10', {wanted}")]);
    check_id(address, "~", &["expected an id, found nothing"]);
    check_id(address, "[]", &["expected an id, found a list"]);
    check_id(address, "{comment: x}", &["missing field 'id'"]);
    check_id(
        address,
        "2001:db8::",
        &[
            "expected an id, found a mapping: put an address that ends in a colon in quotes: \
             '2001:db8::'",
        ],
    );
    check_id(
        address,
        "10.0.0.1/32",
        &["invalid id '10.0.0.1/32', must be an address without '/32', did you mean '10.0.0.1'?"],
    );
    check_id(
        address,
        "10.0.0.1/24",
        &["invalid id '10.0.0.1/24', must have no host bits set, did you mean '10.0.0.0/24'?"],
    );
    check_id(
        address,
        "10.0.0.0/33",
        &["invalid id '10.0.0.0/33', the prefix length of an IPv4 address is at most 32"],
    );
    for id in ["0.0.0.0/0", "::/0"] {
        check_id(
            address,
            id,
            &[&format!(
                "invalid id '{id}', which is every address: set the limit's own rate instead"
            )],
        );
    }
    check_id(
        address,
        "fe80::1%eth0",
        &[
            "invalid id 'fe80::1%eth0', must have no zone ('%…'): an address is limited on every \
             interface",
        ],
    );
    check_id(
        "BytesPerIPv4Range",
        "192.0.2.0",
        &["invalid id '192.0.2.0', must be a range, did you mean '192.0.2.0/24'?"],
    );
    check_id(
        "BytesPerIPv6Range",
        "192.0.2.0/24",
        &["invalid id '192.0.2.0/24', expected an IPv6 /48 range, such as '2001:db8:1::/48'"],
    );
}

#[test]
fn ids_in_lists() {
    check(
        "overrides:
  - PacketsPerIPAddress:
      burst: 1
      count: 1
      period: 1s
      ids:
        - id: 192.0.2.300
          comment: ~
        - {id: 10.0.0.1, comment: [x], coment: y}
        - 2001:db8::1
  - PacketsPerIPAddress:
      burst: 1
      count: 1
      period: 1s
      ids: [2001:0db8::1, 10.0.0.2, 10.0.0.1]
  - BytesPerIPAddress: {burst: 9999, count: 1, period: 1s, ids: [10.0.0.1]}
",
        &[
            "7:15: invalid id '192.0.2.300', expected an IPv4 or IPv6 address or prefix, such as \
             '192.0.2.1' or '2001:db8::/64'",
            "8:20: expected a comment, found nothing",
            "9:35: expected a comment, found a list",
            "9:40: unknown field 'coment', did you mean 'comment'?",
            "15:13: duplicate id '2001:0db8::1' of PacketsPerIPAddress, first at 10:11",
            "15:37: duplicate id '10.0.0.1' of PacketsPerIPAddress, first at 9:16",
        ],
    );
}

#[test]
fn overrides_of_limits_of_one_s_own() {
    check(
        "limits:
  Own: {id: ipAddress, cost: bytes}
  Net: {id: ipv4RangeCIDR, prefix-length: 20, cost: packets}
  Net6: {id: ipv6RangeCIDR, prefix-length: 56, cost: packets}
  All: {id: total, cost: packets, burst: 1, count: 1, period: 1s}
  Bad: {id: x, cost: packets}
overrides:
  Own:2001:db8::1: {burst: 2000, count: 1, period: 1s}
  Own:2001:db8::/64: {burst: 1, count: 1, period: 1s}
  Own: {burst: 2000, count: 1, period: 1s}
  Net:10.0.16.0/20: {burst: 1, count: 1, period: 1s}
  Net:10.0.1.0/20: {burst: 1, count: 1, period: 1s}
  Net:10.0.1.0/24: {burst: 1, count: 1, period: 1s}
  Net6:2001:db8::: {burst: 1, count: 1, period: 1s}
  Net6:2001:db8::/48: {burst: 1, count: 1, period: 1s}
  All:10.0.0.1: {burst: 1, count: 1, period: 1s}
  Bad:anything: {burst: 1, count: 1, period: 1s}
  Onw:10.0.0.1: {burst: 1, count: 1, period: 1s}
",
        &[
            "6:13: unknown id 'x', must be one of ipAddress, ipv4RangeCIDR, ipv6RangeCIDR, \
             regId, destination, zone, domain, question, server-name, total",
            "9:30: invalid burst '1', must be at least 1514 bytes: an Ethernet frame larger than \
             the burst could never pass",
            "10:3: missing id, expected 'Own:' followed by an IPv4 or IPv6 address or prefix, such \
             as '192.0.2.1' or '2001:db8::/64'",
            "12:3: invalid id '10.0.1.0/20', must have no host bits set, did you mean \
             '10.0.0.0/20'?",
            "13:3: invalid id '10.0.1.0/24', expected an IPv4 /20 range, such as '192.0.0.0/20'",
            "14:3: invalid id '2001:db8::', must be a range, did you mean '2001:db8::/56'?",
            "15:3: invalid id '2001:db8::/48', expected an IPv6 /56 range, such as \
             '2001:db8:1::/56'",
            "16:3: All cannot have overrides: it has one bucket for all sources",
            "18:3: unknown limit 'Onw', did you mean 'Own'?",
        ],
    );
    check(
        "limits: {Own: {id: ipAddress, cost: packets}}
overrides:
  - Own: {burst: 1, count: 1, period: 1s, ids: [10.0.0.0/8, 10.0.0.1, 10.0.0.0/8]}
  - Own:10.0.0.2: {burst: 1, count: 1, period: 1s}
  - {All: {burst: 1, count: 1, period: 1s, ids: [1]}}
",
        &[
            "3:71: duplicate id '10.0.0.0/8' of Own, first at 3:49",
            "4:5: unknown limit 'Own:10.0.0.2', did you mean 'Own' with 'ids: [10.0.0.2]'?",
            "4:5: missing field 'ids'",
            "5:6: unknown limit 'All', must be one of PacketsPerIPAddress, PacketsPerIPv6Range, \
             BytesPerIPAddress, BytesPerIPv6Range, NewConnectionsPerIPAddress, \
             NewConnectionsPerIPv6Range, PacketsPerIPv4Range, BytesPerIPv4Range, \
             NewConnectionsPerIPv4Range, PacketsPerSubscriber, BytesPerSubscriber, \
             NewConnectionsPerSubscriber, Own",
        ],
    );
}

#[test]
fn any_name_may_be_in_limits_that_cannot_be_read() {
    let errors = |limits: &str| {
        let overrides = "overrides:\n  Own:1: {burst: 0, count: 1, period: 1s}\n";
        let yaml = format!("{limits}\n{overrides}");
        load(&[("limiter.yaml", yaml.as_bytes()), ("l.yml", b"Own: [\n")]).unwrap_err()
    };
    let burst =
        "limiter.yaml:3:18: invalid burst '0', must be > 0: to refuse everybody, use 'block'";
    assert_eq!(
        errors("limit: {}"),
        [
            "limiter.yaml:1:1: unknown field 'limit', did you mean 'limits'?",
            burst
        ]
    );
    assert_eq!(
        errors("limits: l.yml"),
        [burst, "l.yml:1:6: invalid YAML: unclosed bracket '['"]
    );
}
