//! The owners that an override is for, as files write them.

use std::{fmt, net::IpAddr, str::FromStr};

use ipnet::IpNet;
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
