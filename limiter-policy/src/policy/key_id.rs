//! Formats the keys of buckets for people.

use std::{collections::HashMap, net::IpAddr};

use ipnet::IpNet;
use limiter_common::{
    key::{BucketKey, Key},
    limit::{IdFormat, KeyPart, NameKind},
};

use super::{DnsName, OverrideId, QuestionNames};

/// Translations of the numbers in keys, as far as the caller has them.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyNames<'a> {
    /// The name of a key that is an interface.
    pub interface: &'a str,
    /// The zones by the numbers that name their buckets.
    pub zones: Option<&'a HashMap<u64, DnsName>>,
    /// The names of the section `server-names` by the numbers that name their buckets.
    pub server_names: Option<&'a HashMap<u64, DnsName>>,
    /// The texts of the question that named the key. The datapath keeps only hashes, so only a caller with
    /// the question can supply them.
    pub question_names: Option<&'a QuestionNames>,
}

/// Formats a key as in a configuration file. An unknown zone or question becomes `#` and its
/// number.
#[must_use]
pub fn key_id(key: &Key, names: &KeyNames<'_>) -> String {
    match key {
        Key::Source {
            address,
            prefix_length,
        } => {
            let address = IpAddr::from(*address);
            IpNet::new(address, *prefix_length).map_or_else(
                |_| address.to_string(),
                |prefix| OverrideId::Prefix(prefix).to_string(),
            )
        }
        Key::Destination(address) => IpAddr::from(*address).to_string(),
        Key::Number(KeyPart::Interface, _) => names.interface.to_owned(),
        Key::Number(KeyPart::Host, _) => IdFormat::Total.name().to_owned(),
        Key::Number(KeyPart::ServerName, number) => {
            let name = names.server_names.and_then(|names| names.get(number));
            name.map_or_else(|| format!("#{number:016x}"), ToString::to_string)
        }
        Key::Number(of, number) => match of.name_kind() {
            Some(name_kind) => names.of_number(name_kind, *number),
            None => number.to_string(),
        },
    }
}

/// Formats a bucket's key, and the name if the key has a bucket for each name.
#[must_use]
pub fn bucket_id(key: &BucketKey, names: &KeyNames<'_>) -> String {
    let id = key_id(&key.decode(), names);
    match key.name() {
        Some((name_kind, number)) => format!("{id}, {}", names.of_number(name_kind, number)),
        None => id,
    }
}

/// Formats a limit's id: the format with the length of ranges, and the part of a packet's DNS question that
/// splits each key's bucket.
#[must_use]
pub fn id_text(id_format: IdFormat, per_name: Option<NameKind>) -> String {
    let name = id_format.name();
    let id = match id_format.range() {
        Some(range) => format!("{name} /{}", range.prefix_length),
        None => name.to_owned(),
    };
    match per_name {
        Some(name_kind) => format!("{id}, {}", name_kind.name()),
        None => id,
    }
}

impl KeyNames<'_> {
    fn of_number(&self, name_kind: NameKind, number: u64) -> String {
        let known = match name_kind {
            NameKind::Zone => {
                let zone = self.zones.and_then(|zones| zones.get(&number));
                zone.map(DnsName::to_string)
            }
            NameKind::Domain => self
                .question_names
                .and_then(|question_names| question_names.domain.clone()),
            NameKind::Question => self
                .question_names
                .map(|question_names| question_names.question.clone()),
        };
        known.unwrap_or_else(|| format!("#{number:016x}"))
    }
}

#[cfg(test)]
mod tests {
    use limiter_common::{key::BucketKey, limit::LimitId};

    use super::*;

    #[test]
    fn ids_are_those_of_configuration_files() {
        let names = KeyNames {
            interface: "eth0",
            ..KeyNames::default()
        };
        let check = |key: BucketKey, id: &str| assert_eq!(key_id(&key.decode(), &names), id);
        let source = |address: &str, prefix_length| {
            let address: IpAddr = address.parse().unwrap();
            BucketKey::of_source(LimitId(1), address.into(), prefix_length)
        };
        check(source("192.0.2.77", 32), "192.0.2.77");
        check(source("192.0.2.77", 24), "192.0.2.0/24");
        check(source("2001:db8:1:2::3", 128), "2001:db8:1:2::3");
        check(source("2001:db8:1:2::3", 48), "2001:db8:1::/48");
        check(BucketKey::of_subscriber(LimitId(1), 1001), "1001");
        check(BucketKey::of_interface(LimitId(1), 3), "eth0");
        check(BucketKey::of_host(LimitId(1)), "total");
        let to: IpAddr = "2001:db8::1".parse().unwrap();
        check(
            BucketKey::of_destination(LimitId(1), to.into()),
            "2001:db8::1",
        );
    }

    #[test]
    fn zones_and_questions_have_names_if_they_are_known() {
        let zones = HashMap::from([
            (10, "example.com".parse().unwrap()),
            (11, DnsName::default()),
        ]);
        let question_names = QuestionNames {
            question: "www.example.com A".to_owned(),
            domain: Some("example.org".to_owned()),
        };
        let known = KeyNames {
            zones: Some(&zones),
            question_names: Some(&question_names),
            ..KeyNames::default()
        };
        for (of, number, names, id) in [
            (KeyPart::Zone, 10, known, "example.com"),
            (KeyPart::Zone, 11, known, "."),
            (KeyPart::Zone, 12, known, "#000000000000000c"),
            (KeyPart::Question, 10, known, "www.example.com A"),
            (KeyPart::Domain, 10, known, "example.org"),
            (KeyPart::Zone, 10, KeyNames::default(), "#000000000000000a"),
            (
                KeyPart::Question,
                10,
                KeyNames::default(),
                "#000000000000000a",
            ),
        ] {
            let key = BucketKey::of_number(LimitId(1), of, number);
            assert_eq!(bucket_id(&key, &names), id, "{of:?} {number}");
        }
        let source: IpAddr = "192.0.2.77".parse().unwrap();
        let key = BucketKey::of_source(LimitId(1), source.into(), 24);
        let of_zone = key.with_name(NameKind::Zone, 10);
        assert_eq!(bucket_id(&of_zone, &known), "192.0.2.0/24, example.com");
        let of_subscriber = BucketKey::of_subscriber(LimitId(1), 7).with_name(NameKind::Domain, 2);
        assert_eq!(bucket_id(&of_subscriber, &known), "7, example.org");
    }
}
