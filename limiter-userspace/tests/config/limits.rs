//! The section `limits`.

use super::harness::{LIMIT, SECOND, check, fields_of, rate, read};

#[test]
fn names() {
    let (sections, fields) = (fields_of("## Sections"), fields_of("### `limits`"));
    check(
        "limit: 1\nmodes: auto\nxyz: 1\n5: 1\n~: 1\n[a]: 1\n",
        &[
            "1:1: unknown field 'limit', did you mean 'limits'?",
            "2:1: unknown field 'modes', did you mean 'mode'?",
            &format!("3:1: unknown field 'xyz', must be one of {sections}"),
            &format!("4:1: unknown field '5', must be one of {sections}"),
            "5:1: expected a name, found nothing",
            "6:1: expected a name, found a list",
        ],
    );
    check(
        "limits:
  PacketPerIPAdress: {burst: 1, count: 1, period: 1s}
  bytesperipv6range: {burst: 1, count: 1, period: 1s}
  PacketsPerAccount: {burst: 0, count: 1, period: 1s, x: 1}
",
        &[
            "2:3: unknown limit 'PacketPerIPAdress', did you mean 'PacketsPerIPAddress'? (A limit \
             of your own needs 'id' and 'cost')",
            "3:3: unknown limit 'bytesperipv6range', did you mean 'BytesPerIPv6Range'? (A limit of \
             your own needs 'id' and 'cost')",
            "4:3: unknown limit 'PacketsPerAccount': a limit of your own needs 'id' and 'cost'; \
             the built-in limits are PacketsPerIPAddress, PacketsPerIPv6Range, BytesPerIPAddress, \
             BytesPerIPv6Range, NewConnectionsPerIPAddress, NewConnectionsPerIPv6Range, \
             PacketsPerIPv4Range, BytesPerIPv4Range, NewConnectionsPerIPv4Range, \
             PacketsPerSubscriber, BytesPerSubscriber, NewConnectionsPerSubscriber",
            "4:30: invalid burst '0', must be > 0: to refuse everybody, use 'block'",
            &format!("4:55: unknown field 'x', must be one of {fields}"),
        ],
    );
    check(
        &format!("{LIMIT}mode: auto\nmode: native\n{LIMIT}"),
        &[
            "3:1: duplicate 'mode', first at 2:1",
            "4:1: duplicate 'limits', first at 1:1",
        ],
    );
}

/// Unquoted, YAML's words for null are no strings.
#[test]
fn names_that_mean_nothing() {
    let limits = |name: &str| {
        let rate = "burst: 1, count: 1, period: 1s";
        format!(
            "limits:\n  PacketsPerIPAddress: {{{rate}}}\n  {name}: {{id: total, cost: packets, {rate}}}\n"
        )
    };
    check(
        &limits("Null"),
        &["3:3: expected a name, found 'Null', by which YAML means nothing: put it in quotes"],
    );
    check(&limits("'Null'"), &[]);
    check(
        &format!("{LIMIT}lists: [{{name: null, cidr: 192.0.2.1}}]\n"),
        &[
            "2:16: expected a list's name, found 'null', by which YAML means nothing: put it in quotes",
        ],
    );
}

#[test]
fn empty_sections() {
    check(
        "limits: {}",
        &["1:9: no limits: name at least one, or leave the section out"],
    );
    check(
        "limits:\n",
        &["1:7: expected a map of limit names to burst, count and period, or rate, found nothing"],
    );
    check(
        "limits: []\n",
        &["1:9: expected a map of limit names to burst, count and period, or rate, found a list"],
    );
    for overrides in ["{}", "[]"] {
        check(
            &format!("{LIMIT}overrides: {overrides}"),
            &["2:12: no overrides: name at least one, or leave the section out"],
        );
    }
    check(
        &format!("{LIMIT}overrides: 5"),
        &[
            "2:12: expected a map of 'Name:id' to a rate, or a list of overrides \
             with 'ids', found the number '5'",
        ],
    );
}

const RATE: &str = "burst: 2000, count: 1, period: 1s";

#[test]
fn names_of_one_s_own() {
    let long = "x".repeat(64);
    for name in ["a", "Web.syn-rate_1", &long] {
        check(
            &format!("limits:\n  {name}: {{id: total, cost: packets, {RATE}}}\n"),
            &[],
        );
    }
    let longer = "x".repeat(65);
    for name in ["'1a'", "-a", "'a b'", "'a:b'", "''", "ä", &longer] {
        let bare = name.trim_matches('\'');
        check(
            &format!("limits:\n  {name}: {{id: total, cost: packets, {RATE}}}\n"),
            &[&format!(
                "2:3: invalid name '{bare}', expected a letter followed by up to 63 letters, \
                 digits, '-', '_' or '.'"
            )],
        );
    }
    check(
        &format!("limits:\n  packetsperIPaddress: {{id: total, cost: packets, {RATE}}}\n"),
        &[
            "2:3: invalid name 'packetsperIPaddress', which differs from a built-in name only in \
             case, did you mean 'PacketsPerIPAddress'?",
        ],
    );
}

#[test]
fn definitions() {
    let fields = fields_of("### `limits`");
    let ids = "ipAddress, ipv4RangeCIDR, ipv6RangeCIDR, regId, destination, zone, domain, question, server-name, total";
    check(
        &format!(
            "limits:
  A: {{id: ipAddress, {RATE}}}
  B: {{cost: packets, {RATE}}}
  C: {{idd: total, cost: packets, {RATE}}}
  D: {{id: ipAdress, cost: byte, {RATE}}}
  E: {{id: asn, cost: [], {RATE}}}
  F: {{id: total, cost: bytes, mode: onserve, burst: 5, count: 1, period: 1s}}
  G: {{id: total, cost: bytes, mode: ~, priority: 1, {RATE}}}
"
        ),
        &[
            "2:3: missing field 'cost'",
            "3:3: missing field 'id'",
            "4:7: unknown field 'idd', did you mean 'id'?",
            "5:11: unknown id 'ipAdress', did you mean 'ipAddress'?",
            "5:27: unknown cost 'byte', did you mean 'bytes'?",
            &format!("6:11: unknown id 'asn', must be one of {ids}"),
            "6:22: expected packets, bytes, new-connections, connections, handshakes or new-names, found a list",
            "7:37: unknown mode 'onserve', did you mean 'observe'?",
            "7:53: invalid burst '5', must be at least 1514 bytes: an Ethernet frame larger than \
             the burst could never pass",
            "8:37: expected enforce, observe or off, found nothing",
            &format!("8:40: unknown field 'priority', must be one of {fields}"),
        ],
    );
}

#[test]
fn built_in_limits_are_defined_already() {
    let why = "is not for BytesPerIPv4Range, a built-in limit with id ipv4RangeCIDR and cost \
               bytes: use another name";
    check(
        &format!(
            "limits:
  BytesPerIPv4Range: {{id: ipv4RangeCIDR, cost: packets, match: {{protocol: x}}, {RATE}}}
"
        ),
        &[
            &format!("2:23: 'id' {why}"),
            &format!("2:42: 'cost' {why}"),
            &format!("2:57: 'match' {why}"),
        ],
    );
}

#[test]
fn modes() {
    check(
        &format!(
            "limits:
  PacketsPerIPAddress: {{mode: enforce, {RATE}}}
  PacketsPerIPv4Range: {{mode: observe, {RATE}}}
  BytesPerIPAddress: {{mode: off, {RATE}}}
  BytesPerIPv4Range: {{mode: 'off'}}
"
        ),
        &[],
    );
    check(
        "limits:
  PacketsPerIPAddress: {mode: on}
  PacketsPerIPv4Range: {mode: disable}
",
        &[
            "2:31: unknown mode 'on', must be one of enforce, observe, off",
            "3:31: unknown mode 'disable', must be one of enforce, observe, off",
        ],
    );
}

#[test]
fn prefix_lengths() {
    for (id, lengths) in [("ipv4RangeCIDR", [8, 32]), ("ipv6RangeCIDR", [16, 128])] {
        for length in lengths {
            check(
                &format!(
                    "limits: {{Own: {{id: {id}, cost: packets, prefix-length: {length}, {RATE}}}}}"
                ),
                &[],
            );
        }
    }
    let range = "is only for ranges, not for id";
    check(
        &format!(
            "limits:
  PacketsPerIPv4Range: {{prefix-length: 7, {RATE}}}
  BytesPerIPv4Range: {{prefix-length: 33, {RATE}}}
  PacketsPerIPv6Range: {{prefix-length: 15, {RATE}}}
  BytesPerIPv6Range: {{prefix-length: 129, {RATE}}}
  PacketsPerIPAddress: {{prefix-length: 24, {RATE}}}
  Own: {{id: total, cost: packets, prefix-length: /24, {RATE}}}
  Mine: {{id: ipv4RangeCIDR, cost: packets, prefix-length: /24, {RATE}}}
  Other: {{id: x, cost: packets, prefix-length: 0, {RATE}}}
"
        ),
        &[
            "2:40: invalid prefix-length '7', must be from 8 to 32",
            "3:38: invalid prefix-length '33', must be from 8 to 32",
            "4:40: invalid prefix-length '15', must be from 16 to 128",
            "5:38: invalid prefix-length '129', must be from 16 to 128",
            &format!("6:25: 'prefix-length' {range} ipAddress"),
            &format!("7:35: 'prefix-length' {range} total"),
            "8:59: expected a whole number, such as 250 or 10k, found the text '/24'",
            "9:15: unknown id 'x', must be one of ipAddress, ipv4RangeCIDR, ipv6RangeCIDR, \
             regId, destination, zone, domain, question, server-name, total",
        ],
    );
}

#[test]
fn a_limit_without_a_rate_needs_overrides() {
    check(
        "limits:
  PacketsPerIPAddress: {}
  BytesPerIPAddress: {mode: off}
  Own: {id: ipAddress, cost: packets}
overrides:
  PacketsPerIPAddress:10.0.0.1: {burst: 1, count: 1, period: 1s}
  Own:10.0.0.1: {burst: 1, count: 1, period: 1s}
  BytesPerIPAddress:10.0.0.1: {burst: 2000, count: 1, period: 1s}
",
        &[],
    );
    let nothing = "limits nothing: it needs burst, count and period, or rate";
    check(
        "limits:
  PacketsPerIPAddress: {mode: observe}
  Own: {id: ipAddress, cost: packets}
  All: {id: total, cost: packets}
",
        &[
            &format!("2:3: PacketsPerIPAddress {nothing}, or overrides"),
            &format!("3:3: Own {nothing}, or overrides"),
            &format!("4:3: All {nothing}"),
        ],
    );
    // A wrong override might be the one that supplies the rate, so a missing default gets no
    // further error.
    check(
        "limits: {PacketsPerIPAddress: {}}\noverrides: {PacketsPerIPAddres:10.0.0.1: ~}",
        &[
            "2:13: unknown limit 'PacketsPerIPAddres', did you mean 'PacketsPerIPAddress'?",
            "2:42: expected burst, count and period, or rate, found nothing",
        ],
    );
    check(
        "limits: {PacketsPerIPAddress: {}}\noverride: []",
        &["2:1: unknown field 'override', did you mean 'overrides'?"],
    );
}

#[test]
fn too_many_limits() {
    let own = |number: usize| format!("  L{number}: {{id: total, cost: packets, {RATE}}}\n");
    let limits: String = (0..64).map(own).collect();
    let limits = format!("limits:\n{limits}");
    check(&limits, &[]);
    let message = "too many limits, the maximum is 64";
    check(
        &format!("{limits}{}{}", own(64), own(65)),
        &[&format!("66:3: {message}")],
    );
    // A limit counts even if only overrides name it.
    check(
        &format!(
            "overrides:\n  PacketsPerIPAddress:10.0.0.1: {{burst: 1, count: 1, period: \
             1s}}\n{limits}"
        ),
        &[&format!("2:3: {message}")],
    );
}

#[test]
fn large_numbers_have_letters() {
    let policy = read(
        "limits: {BytesPerIPAddress: {burst: 10M, count: 2G, period: 1d}, PacketsPerIPAddress: \
         {rate: 10k/s}}",
    );
    let rates: Vec<_> = policy.limits.iter().map(|limit| limit.default).collect();
    let packets = rate(10_000, 10_000, SECOND);
    let bytes = rate(10_000_000, 2_000_000_000, 86_400 * SECOND);
    assert_eq!(rates, [Some(packets), Some(bytes)]);
    check(
        "limits: {PacketsPerIPAddress: {burst: 10m, count: 10000000000G, period: 1s}}",
        &[
            "1:39: expected a whole number, such as 250 or 10k, found the text '10m'",
            "1:51: invalid count '10000000000G', must be at most 9223372036854775807",
        ],
    );
}

#[test]
fn wrong_indentation_is_told_with_its_lines() {
    check(
        "limits:\n  Own:\n    id: ipAddress\n   cost: packets\n",
        &[
            "4:4: invalid YAML: line 4 is indented by 3, less than line 3, but like no line above \
             it (0, 2, 4): indent it like the lines that it belongs to",
        ],
    );
    check(
        "limits:\n  Own:\n    id: ipAddress\n     cost: packets\n",
        &[
            "4:10: invalid YAML: line 4 is indented more than line 3, which has its value already: \
             indent both alike",
        ],
    );
    check(
        "limits:\n\tOwn: {}\n",
        &[
            "2:2: invalid YAML: line 2 is indented with a tab: use spaces, which count the same \
             everywhere",
        ],
    );
}
