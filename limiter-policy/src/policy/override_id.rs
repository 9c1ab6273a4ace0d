//! Ids as files write them: the owners that an override is for, and the owner of a bucket.

use std::{fmt, net::IpAddr, str::FromStr};

use ipnet::IpNet;
use limiter_common::{
    limit::{IdFormat, NamedBy},
    owner::Owner,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use thiserror::Error;

/// A subscriber's number, in place of Boulder's regId.
pub type SubscriberNumber = u64;

/// The owners that an override is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OverrideId {
    /// The addresses of a prefix; a single address is a /32 or /128. Host bits are zero.
    Prefix(IpNet),
    /// A subscriber.
    Subscriber(SubscriberNumber),
}

/// Formats the id as in a configuration file: a single address without its prefix length.
impl fmt::Display for OverrideId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(prefix) if prefix.prefix_len() == prefix.max_prefix_len() => {
                write!(formatter, "{}", prefix.addr())
            }
            Self::Prefix(prefix) => write!(formatter, "{prefix}"),
            Self::Subscriber(number) => write!(formatter, "{number}"),
        }
    }
}

/// A text that is not the id of an override.
#[derive(Debug, Error)]
#[error("expected a prefix, an address or a subscriber's number, found '{0}'")]
pub struct InvalidOverrideId(String);

/// Parses an [`OverrideId`] as it is displayed.
impl FromStr for OverrideId {
    type Err = InvalidOverrideId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let prefix = text.parse::<IpNet>();
        let prefix = prefix.or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        match (prefix, text.parse()) {
            (Ok(prefix), _) => Ok(Self::Prefix(prefix)),
            (_, Ok(number)) => Ok(Self::Subscriber(number)),
            _ => Err(InvalidOverrideId(text.to_owned())),
        }
    }
}

impl Serialize for OverrideId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'d> Deserialize<'d> for OverrideId {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// Formats a bucket's owner as in a configuration file; `interface` is the interface's name if the
/// owner is one.
#[must_use]
pub fn owner_id(owner: &Owner, interface: &str) -> String {
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
        Owner::Number(NamedBy::Interface, _) => interface.to_owned(),
        Owner::Number(NamedBy::Host, _) => IdFormat::Total.name().to_owned(),
        // Only hashes are known of names.
        Owner::Number(NamedBy::Question | NamedBy::Zone | NamedBy::ServerName, number) => {
            format!("#{number:016x}")
        }
        Owner::Number(_, number) => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use limiter_common::{limit::LimitId, owner::BucketKey};

    use super::*;

    #[test]
    fn ids_are_those_of_configuration_files() {
        let check = |key: BucketKey, id: &str| assert_eq!(owner_id(&key.owner(), "eth0"), id);
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
}
