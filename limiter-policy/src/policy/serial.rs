//! The policy in serde's data model, for our own files and the control channel.
//!
//! Names are the same as in configuration files. Most types here and in `limiter-common` (feature `serde`)
//! derive their format. This module has the rest, except for types that need one of the policy's.

use std::collections::BTreeMap;

use ipnet::IpNet;
use serde::{Deserialize, Deserializer, de::Error as _};

use super::SubscriberNumber;

/// A limit's id format, by name; ranges with their prefix length.
pub(super) mod id_format {
    use std::collections::BTreeMap;

    use limiter_common::limit::IdFormat;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Form {
        Name(String),
        Range(BTreeMap<String, Length>),
    }

    #[derive(Serialize, Deserialize)]
    struct Length {
        prefix_length: u8,
    }

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde hands over references"
    )]
    pub(in super::super) fn serialize<S: Serializer>(
        format: &IdFormat,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let name = format.name().to_owned();
        let form = match format.range() {
            None => Form::Name(name),
            Some(range) => {
                let prefix_length = range.prefix_length;
                Form::Range(BTreeMap::from([(name, Length { prefix_length })]))
            }
        };
        form.serialize(serializer)
    }

    pub(in super::super) fn deserialize<'d, D: Deserializer<'d>>(
        deserializer: D,
    ) -> Result<IdFormat, D::Error> {
        let (name, length) = match Form::deserialize(deserializer)? {
            Form::Name(name) => (name, None),
            Form::Range(ranges) => {
                let mut ranges = ranges.into_iter();
                match (ranges.next(), ranges.next()) {
                    (Some((name, length)), None) => (name, Some(length.prefix_length)),
                    _ => return Err(D::Error::custom("expected one id format")),
                }
            }
        };
        let mut formats = IdFormat::ALL.into_iter();
        let named =
            formats.find(|one| one.name() == name && one.range().is_some() == length.is_some());
        match (named, length) {
            (Some(format), None) => Ok(format),
            (Some(format), Some(length)) => Ok(format.with_prefix_length(length)),
            (None, _) => Err(D::Error::custom(format_args!("unknown id format '{name}'"))),
        }
    }
}

/// Returns whether a value is its type's default.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Deserializes the prefixes of each subscriber. JSON puts numbers used as names in quotes, which
/// serde does not remove inside flattened or tagged types.
pub(super) fn subscribers<'d, D: Deserializer<'d>>(
    deserializer: D,
) -> Result<BTreeMap<SubscriberNumber, Vec<IpNet>>, D::Error> {
    let subscribers = BTreeMap::<String, Vec<IpNet>>::deserialize(deserializer)?;
    let numbered = subscribers.into_iter().map(|(number, prefixes)| {
        let number = number.parse().map_err(|_| {
            D::Error::custom(format_args!("invalid subscriber's number '{number}'"))
        })?;
        Ok((number, prefixes))
    });
    numbered.collect()
}

#[cfg(test)]
mod tests {
    use limiter_common::{
        answer::Answer,
        limit::{Cost, IdFormat, LimitId},
        packet::TcpState,
        reason::Action,
        standing::Standing,
        strategy::Strategy,
    };
    use serde::Serialize;
    use serde_json::{Value, json};

    use super::*;
    use crate::policy::{
        AnswerRates, AutomaticBan, BanMode, BanOnly, Deny, DnsMatch, Escalation, Fragments,
        IcmpTypes, Limit, List, Match, Mode, Override, Policy, Proof, Queue, Rate, Reserve,
        ReserveSize, StandingSettings, TcpFlags,
    };

    fn limit() -> Limit {
        let rate = |burst| Rate {
            burst,
            count: 2,
            period_ns: u64::MAX,
        };
        let other = |id: &str, comment: Option<&str>| Override {
            id: id.parse().unwrap(),
            rate: rate(3),
            comment: comment.map(ToOwned::to_owned),
        };
        Limit {
            id: LimitId(32),
            matching: Match {
                protocols: vec![6],
                source_ports: vec![],
                destination_ports: vec![80..=80, 8000..=8099],
                tcp_flags: Some(TcpFlags {
                    set: TcpFlags::SYN,
                    clear: TcpFlags::ACK | 0x80,
                }),
                icmp_types: IcmpTypes {
                    icmp: vec![8],
                    icmpv6: vec![128, 135],
                },
                destinations: vec!["192.0.2.0/24".parse().unwrap()],
                fragments: Fragments::Ignore,
                standing: vec![Standing::Retried, Standing::Unknown],
                tcp_states: vec![TcpState::None],
                dns: DnsMatch {
                    names: vec!["*.example".parse().unwrap(), ".".parse().unwrap()],
                    types: vec![255],
                    opcodes: vec![0],
                    recursion_desired: Some(true),
                    edns: Some(false),
                },
                server_names: vec!["*.server.example".parse().unwrap()],
                otherwise: true,
            },
            mode: Mode::Observe,
            reserve: Some(Reserve {
                familiar: ReserveSize::NOTHING,
                fresh: ReserveSize::Tokens(1),
                retried: ReserveSize::Tokens(1),
                unknown: ReserveSize::Fraction("50%".parse().unwrap()),
            }),
            deny: Some(Deny {
                unknown: Some(Answer::Reset),
                ..Deny::everybody(Answer::Prohibited)
            }),
            ban: Some(AutomaticBan {
                after: 1_000,
                within_ns: 10,
                for_ns: 20,
                at_most_ns: u64::MAX,
                escalate: Escalation::from_thousandths(1_500).unwrap(),
                range_after: None,
                site_after: None,
                only: Some(BanOnly::Proven),
                mode: BanMode::Observe,
            }),
            default: Some(rate(1)),
            overrides: vec![
                other("198.51.100.7", None),
                other("198.51.100.0/24", Some("them")),
                other("2001:db8::/36", None),
                other("::1", None),
                other("18446744073709551615", None),
                other("7.", None),
                other("7:a.example TXT", Some("it")),
            ],
            block: vec!["us".to_owned()],
            queue: Some(Queue {
                size: 1000,
                max_age_ns: 30,
            }),
            group: Some("front".to_owned()),
            ..Limit::with_name("Web", IdFormat::IpAddress, Cost::Packets)
        }
    }

    #[test]
    fn names_are_those_of_configuration_files() {
        let policy = Policy {
            subscribers: BTreeMap::from([(u64::MAX, vec!["192.0.2.1/32".parse().unwrap()])]),
            lists: vec![List::new(
                "us".to_owned(),
                &["192.0.2.0/25", "192.0.2.128/25", "::1/128"]
                    .map(|text| text.parse().unwrap())
                    .to_vec(),
            )],
            exclude: vec!["us".to_owned()],
            standing: Some(StandingSettings {
                visits: None,
                proven_by: vec![Proof::List],
                proven: vec!["us".to_owned()],
                ..StandingSettings::default()
            }),
            answers: Some(AnswerRates::default()),
            ..Policy::from(vec![limit()])
        };
        let json = serde_json::to_value(&policy).unwrap();
        let period = u64::MAX;
        let rate = json!({"burst": 3, "count": 2, "period_ns": period});
        assert_eq!(
            json,
            json!({
                "limits": [{
                    "name": "Web",
                    "id": 32,
                    "id_format": "ipAddress",
                    "cost": "packets",
                    "match": {
                        "protocols": [6],
                        "source_ports": [],
                        "destination_ports": [
                            {"first": 80, "last": 80}, {"first": 8000, "last": 8099}
                        ],
                        "tcp_flags": {"set": ["syn"], "clear": ["ack", "cwr"]},
                        "icmp_types": {"icmp": [8], "icmpv6": [128, 135]},
                        "destinations": ["192.0.2.0/24"],
                        "fragments": "ignore",
                        "dns": {
                            "names": ["*.example", "."],
                            "types": [255],
                            "opcodes": [0],
                            "recursion_desired": true,
                            "edns": false,
                        },
                        "standing": ["retried", "unknown"],
                        "state": ["none"],
                        "server_names": ["*.server.example"],
                        "otherwise": true,
                    },
                    "mode": "observe",
                    "reserve": {"familiar": 0, "fresh": 1, "retried": 1, "unknown": "50%"},
                    "deny": {"unknown": "reset", "else": "prohibited", "slip": 1},
                    "queue": {"size": 1_000, "max_age_ns": 30},
                    "group": "front",
                    "ban": {
                        "after": 1_000,
                        "within_ns": 10,
                        "for_ns": 20,
                        "at_most_ns": period,
                        "escalate": 1.5,
                        "range_after": null,
                        "only": "proven",
                        "mode": "observe",
                    },
                    "default": {"burst": 1, "count": 2, "period_ns": period},
                    "overrides": [
                        {"id": "198.51.100.7", "rate": rate},
                        {"id": "198.51.100.0/24", "rate": rate, "comment": "them"},
                        {"id": "2001:db8::/36", "rate": rate},
                        {"id": "::1", "rate": rate},
                        {"id": "18446744073709551615", "rate": rate},
                        {"id": "7.", "rate": rate},
                        {"id": "7:a.example TXT", "rate": rate, "comment": "it"},
                    ],
                    "block": ["us"],
                }],
                "subscribers": {"18446744073709551615": ["192.0.2.1/32"]},
                "malformed": "drop",
                "lists": [{"name": "us", "prefixes": ["192.0.2.0/24", "::1/128"]}],
                "exclude": ["us"],
                "standing": {
                    "capacity": 1_000_000,
                    "ipv6_prefix": 64,
                    "remember_ns": 2_592_000_000_000_000_u64,
                    "fresh_for_ns": 3_600_000_000_000_u64,
                    "visits": null,
                    "retry": {"after_ns": 200_000_000, "within_ns": 10_000_000_000_u64},
                    "proven_by": ["list"],
                    "proven": ["us"],
                },
                "answers": {
                    "per_prefix": {"burst": 100, "count": 100, "period_ns": 1_000_000_000},
                    "total": {"burst": 100_000, "count": 1_000_000, "period_ns": 1_000_000_000},
                },
            })
        );
        assert_eq!(serde_json::from_value::<Policy>(json).unwrap(), policy);
    }

    /// Serialized names equal the names from the types' own methods.
    #[test]
    fn every_value_has_its_own_name() {
        #[derive(Serialize)]
        struct Description(Cost, #[serde(with = "id_format")] IdFormat, Action);
        let check = |cost: Cost, format: IdFormat, action: Action| {
            let json = serde_json::to_value(Description(cost, format, action)).unwrap();
            let format_name = match &json[1] {
                Value::Object(range) => range.keys().next().map(String::as_str),
                other => other.as_str(),
            };
            assert_eq!(json[0], cost.name());
            assert_eq!(format_name, Some(format.name()));
            assert_eq!(json[2], action.name());
        };
        let prefix_length = 24;
        check(Cost::Packets, IdFormat::IpAddress, Action::Pass);
        check(Cost::Bytes, IdFormat::Total, Action::Drop);
        check(Cost::NewConnections, IdFormat::RegId, Action::Drop);
        check(
            Cost::Bytes,
            IdFormat::Ipv4RangeCidr { prefix_length },
            Action::Drop,
        );
        check(
            Cost::Bytes,
            IdFormat::Ipv6RangeCidr { prefix_length },
            Action::Drop,
        );
        for strategy in Strategy::ALL {
            let limit = Limit {
                strategy,
                ..limit()
            };
            let json = serde_json::to_value(&limit).unwrap();
            // A limit stored before there were strategies has the default one.
            let name = json
                .get("strategy")
                .map_or("gcra", |name| name.as_str().unwrap());
            assert_eq!(name, strategy.name());
            assert_eq!(serde_json::from_value::<Limit>(json).unwrap(), limit);
        }
        for mode in Mode::ALL {
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.name());
        }
        for fragments in Fragments::ALL {
            assert_eq!(serde_json::to_value(fragments).unwrap(), fragments.name());
        }
    }

    #[test]
    fn what_is_no_policy_is_refused() {
        let check = |change: fn(&mut Value), reported: &str| {
            let mut json = serde_json::to_value(limit()).unwrap();
            change(&mut json);
            let error = serde_json::from_value::<Limit>(json).unwrap_err();
            assert!(error.to_string().contains(reported), "{error}");
        };
        check(
            |limit| limit["cost"] = json!("euros"),
            "unknown variant `euros`",
        );
        check(
            |limit| limit["overrides"][0]["id"] = json!("192.0.2:"),
            "'192.0.2:'",
        );
        check(
            |limit| limit["match"]["tcp_flags"]["set"] = json!(["sin"]),
            "unknown TCP flag 'sin'",
        );
    }
}
