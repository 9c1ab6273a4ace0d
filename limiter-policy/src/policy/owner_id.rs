//! The owners of buckets as people read them.

use std::{collections::HashMap, net::IpAddr};

use ipnet::IpNet;
use limiter_common::{
    limit::{IdFormat, NamedBy},
    owner::Owner,
};

use super::{DnsName, OverrideId};

/// The names of owners that buckets know by numbers, as far as the caller has them.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnerNames<'a> {
    /// The name of the owner if it is an interface.
    pub interface: &'a str,
    /// The zones by the numbers that name their buckets.
    pub zones: Option<&'a HashMap<u64, DnsName>>,
    /// The text of the owner if it is a question. The datapath keeps a hash alone, so only who has the
    /// question at hand can say what it is.
    pub question: Option<&'a str>,
}

/// Formats a bucket's owner as in a configuration file; a zone or question of which nothing is known as
/// `#` and its number.
#[must_use]
pub fn owner_id(owner: &Owner, names: &OwnerNames<'_>) -> String {
    match owner {
        Owner::Source {
            address,
            prefix_length,
        } => {
            let address = IpAddr::from(*address);
            IpNet::new(address, *prefix_length).map_or_else(
                |_| address.to_string(),
                |prefix| OverrideId::Prefix(prefix).to_string(),
            )
        }
        Owner::Destination(address) => IpAddr::from(*address).to_string(),
        Owner::Number(NamedBy::Interface, _) => names.interface.to_owned(),
        Owner::Number(NamedBy::Host, _) => IdFormat::Total.name().to_owned(),
        Owner::Number(NamedBy::Zone, number) => {
            let zone = names.zones.and_then(|zones| zones.get(number));
            zone.map_or_else(|| unnamed(*number), DnsName::to_string)
        }
        Owner::Number(NamedBy::Question, number) => {
            (names.question).map_or_else(|| unnamed(*number), str::to_owned)
        }
        Owner::Number(_, number) => number.to_string(),
    }
}

fn unnamed(number: u64) -> String {
    format!("#{number:016x}")
}

#[cfg(test)]
mod tests {
    use limiter_common::{limit::LimitId, owner::BucketKey};

    use super::*;

    #[test]
    fn ids_are_those_of_configuration_files() {
        let names = OwnerNames {
            interface: "eth0",
            ..OwnerNames::default()
        };
        let check = |key: BucketKey, id: &str| assert_eq!(owner_id(&key.owner(), &names), id);
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
        let known = OwnerNames {
            zones: Some(&zones),
            question: Some("www.example.com A"),
            ..OwnerNames::default()
        };
        for (of, number, names, id) in [
            (NamedBy::Zone, 10, known, "example.com"),
            (NamedBy::Zone, 11, known, "."),
            (NamedBy::Zone, 12, known, "#000000000000000c"),
            (NamedBy::Question, 10, known, "www.example.com A"),
            (
                NamedBy::Zone,
                10,
                OwnerNames::default(),
                "#000000000000000a",
            ),
            (
                NamedBy::Question,
                10,
                OwnerNames::default(),
                "#000000000000000a",
            ),
        ] {
            let key = BucketKey::of_number(LimitId(1), of, number);
            assert_eq!(owner_id(&key.owner(), &names), id, "{of:?} {number}");
        }
    }
}
