//! Whole configurations and the policies parsed from them.

use std::collections::BTreeMap;

use limiter_common::{
    limit::{Cost, IdFormat, LimitId},
    reason::Action,
};
use limiter_policy::{
    config::{AttachMode, Bans, Buckets, Config, Control, ListenAddress, Metrics, Offenders, Page},
    policy::{
        CachedNames, CountedConnections, DnsMatch, Fragments, IcmpTypes, Limit, Match, Mode,
        Override, OverrideId, OwnConnections, Policy, TcpFlags, UntilKnown,
    },
};

use super::harness::{SECOND, built_in, load, overridden, rate};

#[test]
fn everything_in_one_file() {
    let yaml = "
interfaces: [eth0, eth1.100]
mode: native
buckets: {capacity: 65536}
state: /var/lib/limiter/state
metrics: {listen: '[::1]:9000'}
page: {listen: '[::1]:9001', hosts: web}
control: {group: adm}
limits:
  PacketsPerIPv6Range: {burst: 400, count: 200, period: 1m}
  PacketsPerIPAddress: {burst: 20, count: 10, period: 1s}
overrides:
  - PacketsPerIPAddress:
      burst: 9
      count: 8
      period: 250ms
      ids:
        - 2001:0DB8:0:0::1
        - id: 10.0.0.2
          comment: a note
        - '10.0.0.1'
    BytesPerIPv4Range:
      burst: 3000
      count: 64000000000
      period: 1s
      ids: [192.0.2.0/24]
";
    let group = Some("adm".to_owned());
    let expected = Config {
        files: vec!["limiter.yaml".into(), "limiter.d".into()],
        interfaces: ["eth0", "eth1.100"]
            .map(|name| name.parse().unwrap())
            .into(),
        mode: AttachMode::Native,
        buckets: Buckets {
            capacity: 65_536,
            ..Buckets::default()
        },
        offenders: Offenders::default(),
        bans: Bans::default(),
        state: Some("/var/lib/limiter/state".into()),
        page: Page {
            listen: Some(ListenAddress::Address("[::1]:9001".parse().unwrap())),
            hosts: vec!["web".to_owned()],
        },
        metrics: Metrics {
            listen: Some("[::1]:9000".parse().unwrap()),
            hosts: Vec::new(),
        },
        control: Control { group },
        fleet: None,
        names_key: None,
        lists: vec![],
        feeds: BTreeMap::new(),
        secrets: None,
        policy: Policy {
            limits: vec![
                Limit {
                    default: Some(rate(20, 10, SECOND)),
                    overrides: vec![
                        overridden("10.0.0.1/32", rate(9, 8, SECOND / 4), None),
                        overridden("10.0.0.2/32", rate(9, 8, SECOND / 4), Some("a note")),
                        overridden("2001:db8::1/128", rate(9, 8, SECOND / 4), None),
                    ],
                    ..built_in(1)
                },
                Limit {
                    default: Some(rate(400, 200, 60 * SECOND)),
                    ..built_in(2)
                },
                Limit {
                    overrides: vec![overridden(
                        "192.0.2.0/24",
                        rate(3000, 64_000_000_000, SECOND),
                        None,
                    )],
                    ..built_in(8)
                },
            ],
            subscribers: BTreeMap::new(),
            sieves: Vec::new(),
            malformed: Action::Drop,
            own_connections: OwnConnections::Exempt,
            until_known: UntilKnown::Pass,
            cached_names: CachedNames::default(),
            connections: CountedConnections::Own,
            lists: vec![],
            exclude: vec![],
            block: vec![],
            never_ban: vec![],
            nat64: vec![],
            standing: None,
            answers: None,
            dns_cookies: None,
            zones: vec![],
            public_suffixes: vec![],
            server_names: vec![],
        },
    };
    assert_eq!(load(&[("limiter.yaml", yaml.as_bytes())]), Ok(expected));
}

const OWN: &str = "
malformed: pass
subscribers:
  1002: 2001:db8:2::/48
  1001: {prefixes: [198.51.100.0/24, '2001:db8:1::', 192.0.2.1], comment: a note}
overrides:
  - PacketsPerSubscriber: {burst: 9, count: 8, period: 1s, ids: [1002, {id: 1001, comment: x}]}
  - Web.syn-rate_1: {burst: 9, count: 8, period: 1s, ids: [192.0.2.0/28, 2001:db8::/32, 192.0.2.1]}
  - PacketsPerIPv6Range: {burst: 9, count: 8, period: 1s, ids: ['2001:db8::/56']}
limits:
  Web.syn-rate_1:
    id: ipAddress
    cost: packets
    mode: observe
    burst: 20
    count: 10
    period: 1s
    match:
      protocol: tcp
      destination-port: [443, '8000-8099', 80]
      source-port: 1024-65535
      tcp-flags: 'syn, !ack'
      destination: [192.0.2.0/24, 2001:db8::1]
      fragments: ignore
  Icmp:
    id: total
    cost: bytes
    mode: off
    match: {protocol: [icmpv6, icmp, 47]}
  PacketsPerIPv6Range: {mode: observe, prefix-length: 56}
  Net: {id: ipv4RangeCIDR, prefix-length: 20, cost: new-connections, burst: 1, count: 1, period: 1s}
";

#[test]
fn limits_of_one_s_own() {
    let config = load(&[("limiter.yaml", OWN.as_bytes())]).unwrap();
    let rated = rate(9, 8, SECOND);
    let subscriber = |number, comment: Option<&str>| Override {
        id: OverrideId::Subscriber(number),
        rate: rated,
        comment: comment.map(ToOwned::to_owned),
    };
    let as_built_in = [
        Limit {
            id_format: IdFormat::Ipv6RangeCidr { prefix_length: 56 },
            mode: Mode::Observe,
            overrides: vec![overridden("2001:db8::/56", rated, None)],
            ..built_in(2)
        },
        Limit {
            overrides: vec![subscriber(1001, Some("x")), subscriber(1002, None)],
            ..built_in(10)
        },
    ];
    let own = [
        Limit {
            name: "Icmp".to_owned(),
            id: LimitId(32),
            id_format: IdFormat::Total,
            cost: Cost::Bytes,
            matching: Match {
                protocols: vec![1, 47, 58],
                ..Match::default()
            },
            mode: Mode::Off,
            ban: None,
            default: None,
            ..built_in(1)
        },
        Limit {
            name: "Net".to_owned(),
            id: LimitId(33),
            id_format: IdFormat::Ipv4RangeCidr { prefix_length: 20 },
            cost: Cost::NewConnections,
            matching: Match::default(),
            mode: Mode::Enforce,
            ban: None,
            default: Some(rate(1, 1, SECOND)),
            ..built_in(1)
        },
        Limit {
            name: "Web.syn-rate_1".to_owned(),
            id: LimitId(34),
            id_format: IdFormat::IpAddress,
            cost: Cost::Packets,
            matching: Match {
                protocols: vec![6],
                source_ports: vec![1024..=65535],
                destination_ports: vec![80..=80, 443..=443, 8000..=8099],
                tcp_flags: Some(TcpFlags { set: 2, clear: 16 }),
                icmp_types: IcmpTypes::default(),
                destinations: vec![
                    "192.0.2.0/24".parse().unwrap(),
                    "2001:db8::1/128".parse().unwrap(),
                ],
                fragments: Fragments::Ignore,
                standing: vec![],
                tcp_states: vec![],
                server_names: vec![],
                dns: DnsMatch::default(),
                otherwise: false,
            },
            mode: Mode::Observe,
            ban: None,
            default: Some(rate(20, 10, SECOND)),
            overrides: vec![
                overridden("192.0.2.0/28", rated, None),
                overridden("192.0.2.1/32", rated, None),
                overridden("2001:db8::/32", rated, None),
            ],
            ..built_in(1)
        },
    ];
    assert_eq!(config.policy.limits[..2], as_built_in);
    assert_eq!(config.policy.limits[2..], own);
}

#[test]
fn subscribers_and_what_is_malformed() {
    let config = load(&[("limiter.yaml", OWN.as_bytes())]).unwrap();
    let expected = BTreeMap::from([
        (
            1001,
            vec![
                "192.0.2.1/32".parse().unwrap(),
                "198.51.100.0/24".parse().unwrap(),
                "2001:db8:1::/128".parse().unwrap(),
            ],
        ),
        (1002, vec!["2001:db8:2::/48".parse().unwrap()]),
    ]);
    assert_eq!(config.policy.subscribers, expected);
    assert_eq!(config.policy.malformed, Action::Pass);
}
