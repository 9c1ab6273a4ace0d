//! `scope: fleet`: limits that the nodes of a fleet share.

use limiter_policy::config::Config;

use crate::harness::load;

const KEY: &[u8] = b"0f0e0d0c0b0a09080706050403020100";
const RATE: &str = "burst: 1000, count: 10000, period: 1s";

/// Loads a file: a limit in the first line, a section `fleet` with these extra fields in the second, then `more`.
fn load_with(limit: &str, fleet: &str, more: &str) -> Result<Config, Vec<String>> {
    load_of("edge", KEY, limit, fleet, more)
}

/// Does the same for a fleet with this name and key.
fn load_of(
    name: &str,
    key: &[u8],
    limit: &str,
    fleet: &str,
    more: &str,
) -> Result<Config, Vec<String>> {
    let least = format!("store: 'redis://127.0.0.1', name: {name}, node: a, key-file: fleet.key");
    let configuration = format!("limits: {{All: {{{limit}}}}}\nfleet: {{{least}{fleet}}}\n{more}");
    load(&[
        ("limiter.yaml", configuration.as_bytes()),
        ("fleet.key", key),
        ("suffixes.dat", b"test\n"),
    ])
}

fn total(more: &str) -> String {
    format!("id: total, cost: packets, {more}")
}

#[test]
fn whose_budget() {
    let nodes_of = |limit: &str, fleet: &str| {
        let policy = load_with(limit, fleet, "").unwrap().policy;
        policy.limits[0].fleet_nodes
    };
    let limit = total(&format!("scope: fleet, {RATE}"));
    assert_eq!(nodes_of(&limit, ", nodes: 3"), Some(3));
    // Without a number, twenty: their minimum shares need a larger burst.
    let large = total("scope: fleet, burst: 400, count: 100, period: 1s");
    assert_eq!(nodes_of(&large, ""), Some(20));
    assert_eq!(nodes_of(&total(&format!("scope: host, {RATE}")), ""), None);
    assert_eq!(nodes_of(&total(RATE), ", nodes: 2"), None);
    let percent = total(&format!("scope: fleet, reserve: {{unknown: 50%}}, {RATE}"));
    assert_eq!(nodes_of(&percent, ", nodes: 2"), Some(2));
    let observing = total(&format!("scope: fleet, mode: observe, {RATE}"));
    assert_eq!(nodes_of(&observing, ", nodes: 2"), Some(2));
    let off = total(&format!("scope: fleet, mode: off, {RATE}"));
    assert_eq!(nodes_of(&off, ", nodes: 2"), Some(2));
    let several =
        "id: total, cost: new-connections, scope: fleet, rate: 10000/second; 300000/minute";
    let limits = load_with(several, ", nodes: 2", "").unwrap().policy;
    assert!(
        limits
            .limits
            .iter()
            .all(|limit| limit.fleet_nodes == Some(2))
    );
}

#[track_caller]
#[expect(clippy::unwrap_used, reason = "the tests' configurations are wrong")]
fn check(limit: &str, fleet: &str, more: &str, expected: &[&str]) {
    let errors = load_with(limit, fleet, more).unwrap_err();
    let errors: Vec<_> = errors
        .iter()
        .map(|error| error.strip_prefix("limiter.yaml:").unwrap())
        .map(|error| error.split_once(": ").unwrap().1)
        .collect();
    assert_eq!(errors, expected);
}

#[test]
fn limits_that_cannot_be_shared() {
    let wrong = |limit: &str, expected: &str| check(limit, ", nodes: 2", "", &[expected]);
    wrong(
        &total(&format!("scope: flet, {RATE}")),
        "unknown scope 'flet', did you mean 'fleet'?",
    );
    wrong(
        &format!("id: ipAddress, cost: handshakes, scope: fleet, {RATE}"),
        "'scope: fleet' is not for cost handshakes, only for cost packets, bytes, new-connections and new-names: \
         packets are charged to them",
    );
    wrong(
        "id: total, cost: connections, scope: fleet, limit: 50",
        "'scope' is not for cost connections: connections that are open cannot be lent",
    );
    wrong(
        &total("scope: fleet, strategy: fixed-window, count: 10000, period: 1s"),
        "'scope: fleet' is not for strategy fixed-window, only for strategy gcra: a window's count cannot move",
    );
    wrong(
        &total("scope: fleet, count: auto"),
        "'scope: fleet' is not for 'count: auto': each host finds what it bears by itself",
    );
    wrong(
        &total("scope: fleet, mode: off"),
        "'scope: fleet' needs burst, count and period, or rate",
    );
    wrong(
        &total(&format!("scope: fleet, reserve: {{unknown: 500}}, {RATE}")),
        "'reserve' beside 'scope: fleet' must be in percentages: how many tokens the bucket holds changes with \
         its rate",
    );
}

#[test]
fn rates_that_cannot_be_shared() {
    let wrong = |rate: &str, expected: &str| {
        let limit = total(&format!("scope: fleet, {rate}"));
        check(&limit, ", nodes: 2", "", &[expected]);
    };
    wrong(
        "burst: 39, count: 10000, period: 1s",
        "'scope: fleet' among 2 nodes needs a burst of at least 40: a minimum share is a twentieth of it, divided by \
         the nodes, and holds a token; `fleet: {nodes: …}` is the most nodes that run at once",
    );
    check(
        "id: destination, cost: bytes, scope: fleet, burst: 60559, count: 1000000, period: 1s",
        ", nodes: 2",
        "",
        &[
            "'scope: fleet' among 2 nodes needs a burst of at least 60560: a minimum share is a twentieth of it, divided \
             by the nodes, and holds a frame of 1514 bytes; `fleet: {nodes: …}` is the most nodes that run at once",
        ],
    );
}

#[test]
fn shared_limits_by_key() {
    let nodes_of = |limit: &str, more: &str| {
        let policy = load_with(limit, ", nodes: 2", more).unwrap().policy;
        policy.limits[0].fleet_nodes
    };
    for id in [
        "ipAddress",
        "ipv4RangeCIDR, prefix-length: 20",
        "ipv6RangeCIDR",
        "destination",
    ] {
        let limit =
            format!("id: {id}, cost: packets, scope: fleet, burst: 40, count: 1, period: 1h");
        assert_eq!(nodes_of(&limit, ""), Some(2), "{id}");
    }
    let bytes =
        "id: ipAddress, cost: bytes, scope: fleet, burst: 60560, count: 20000000000, period: 1s";
    let more = "overrides: {'All:192.0.2.1': {burst: 70000, count: 1, period: 1s}}";
    assert_eq!(nodes_of(bytes, more), Some(2));
    let subscribers = "subscribers: {7: [192.0.2.0/24]}\n\
                       overrides: {'All:7': {burst: 40, count: 1, period: 1s}}";
    let limit = format!("id: regId, cost: new-connections, scope: fleet, {RATE}");
    assert_eq!(nodes_of(&limit, subscribers), Some(2));
    let zones =
        "zones: [example.org]\noverrides: {'All:example.org': {burst: 40, count: 1, period: 1s}}";
    for cost in ["packets", "new-names"] {
        let limit = format!("id: zone, cost: {cost}, scope: fleet, {RATE}");
        assert_eq!(nodes_of(&limit, zones), Some(2), "{cost}");
    }
    for id in [
        "question",
        "domain",
        "[ipAddress, domain]",
        "[regId, question]",
    ] {
        let limit = format!("id: {id}, cost: packets, scope: fleet, {RATE}");
        let more = "public-suffixes: {file: suffixes.dat}\nsubscribers: {7: [192.0.2.0/24]}";
        assert_eq!(nodes_of(&limit, more), Some(2), "{id}");
    }
    check(
        &format!("id: ipAddress, cost: packets, scope: fleet, {RATE}"),
        ", nodes: 2",
        "overrides: {'All:192.0.2.1': {burst: 39, count: 1, period: 1s}}",
        &[
            "'scope: fleet' among 2 nodes needs a burst of at least 40, also in the override '192.0.2.1': a minimum \
             share is a twentieth of it, divided by the nodes, and holds a token; `fleet: {nodes: …}` is the most nodes that run at once",
        ],
    );
}

/// Names in queries are numbered by the fleet's key only if all nodes must number them alike.
#[test]
fn names_are_numbered_by_the_fleets_key() {
    let names_key = |name: &str, key: &[u8], limit: &str| {
        let limit = format!("{limit}, cost: packets, {RATE}");
        let config = load_of(name, key, &limit, ", nodes: 2", "").unwrap();
        config.names_key
    };
    let of = |limit: &str| names_key("edge", KEY, limit);
    let question = "id: question, scope: fleet";
    let key = of(question).unwrap();
    assert_eq!(of("id: [ipAddress, question], scope: fleet"), Some(key));
    for limit in ["id: question", "id: ipAddress, scope: fleet"] {
        assert_eq!(of(limit), None, "{limit}");
    }
    // The key that authenticates counts.
    let other: Vec<u8> = KEY.iter().rev().copied().collect();
    let both = [KEY, &other].join(&b'\n');
    assert_eq!(names_key("edge", &both, question), Some(key));
    let of_others = [
        names_key("edge", &other, question),
        names_key("core", KEY, question),
    ];
    for of_other in of_others {
        assert_ne!(of_other.unwrap(), key);
    }
}

#[test]
fn what_it_needs_of_other_sections() {
    let limit = total(&format!("scope: fleet, {RATE}"));
    check(
        &limit,
        ", nodes: 2",
        "buckets: {scope: interface}\n",
        &["'scope: fleet' needs `buckets: {scope: host}`"],
    );
    let alone = format!("limits: {{All: {{{limit}}}}}\n");
    let errors = load(&[("limiter.yaml", alone.as_bytes())]).unwrap_err();
    assert_eq!(
        errors,
        ["limiter.yaml:1:42: 'scope: fleet' needs a section 'fleet' with the store"]
    );
    for (nodes, expected) in [
        ("0", "invalid nodes '0', must be from 1 to 100"),
        ("101", "invalid nodes '101', must be from 1 to 100"),
        (
            "[a, b]",
            "nodes is the most nodes that run at once, such as 5: their names are not listed",
        ),
    ] {
        check(&limit, &format!(", nodes: {nodes}"), "", &[expected]);
    }
}
