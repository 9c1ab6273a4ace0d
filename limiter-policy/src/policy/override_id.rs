//! The keys of an override, as files write them.

use std::{fmt, net::IpAddr, str::FromStr};

use ipnet::IpNet;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use thiserror::Error;

use super::OverriddenName;

/// A subscriber's number, in place of Boulder's regId.
pub type SubscriberNumber = u64;

/// The keys of an override.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OverrideId {
    /// The addresses of a prefix; a single address is a /32 or /128. Host bits are zero.
    Prefix(IpNet),
    /// A subscriber.
    Subscriber(SubscriberNumber),
    /// A name, for all sources.
    Name(OverriddenName),
    /// A name in packets from the addresses of a prefix.
    PrefixAndName(IpNet, OverriddenName),
    /// A name in packets of a subscriber.
    SubscriberAndName(SubscriberNumber, OverriddenName),
}

impl OverrideId {
    /// Returns the name; `None`: the override holds for all names.
    #[must_use]
    pub const fn name(&self) -> Option<&OverriddenName> {
        match self {
            Self::Prefix(_) | Self::Subscriber(_) => None,
            Self::Name(name) | Self::PrefixAndName(_, name) | Self::SubscriberAndName(_, name) => {
                Some(name)
            }
        }
    }

    /// Returns the sources, without the name; `None`: the override holds for all sources.
    #[must_use]
    pub const fn source(&self) -> Option<Self> {
        match self {
            Self::Prefix(prefix) | Self::PrefixAndName(prefix, _) => Some(Self::Prefix(*prefix)),
            Self::Subscriber(number) | Self::SubscriberAndName(number, _) => {
                Some(Self::Subscriber(*number))
            }
            Self::Name(_) => None,
        }
    }

    /// Returns the id of the same sources with another name.
    #[must_use]
    pub fn with_name(&self, name: OverriddenName) -> Self {
        match self {
            Self::Prefix(prefix) | Self::PrefixAndName(prefix, _) => {
                Self::PrefixAndName(*prefix, name)
            }
            Self::Subscriber(number) | Self::SubscriberAndName(number, _) => {
                Self::SubscriberAndName(*number, name)
            }
            Self::Name(_) => Self::Name(name),
        }
    }

    fn of_sources(text: &str) -> Option<Self> {
        let prefix = text.parse::<IpNet>();
        let prefix = prefix.or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        match (prefix, text.parse()) {
            (Ok(prefix), _) => Some(Self::Prefix(prefix)),
            (_, Ok(number)) => Some(Self::Subscriber(number)),
            _ => None,
        }
    }
}

/// Formats the id as in a configuration file: a single address without its prefix length, and a name that
/// looks like a source with a trailing dot.
impl fmt::Display for OverrideId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(prefix) if prefix.prefix_len() == prefix.max_prefix_len() => {
                write!(formatter, "{}", prefix.addr())
            }
            Self::Prefix(prefix) => write!(formatter, "{prefix}"),
            Self::Subscriber(number) => write!(formatter, "{number}"),
            Self::Name(name) => {
                let text = name.to_string();
                let dot = Self::of_sources(&text).map_or("", |_| ".");
                write!(formatter, "{text}{dot}")
            }
            Self::PrefixAndName(prefix, name) => {
                write!(formatter, "{}:{name}", Self::Prefix(*prefix))
            }
            Self::SubscriberAndName(number, name) => write!(formatter, "{number}:{name}"),
        }
    }
}

/// A text that is not the id of an override.
#[derive(Debug, Error)]
#[error(
    "expected a prefix, an address, a subscriber's number or a name, or two of them with a colon \
     between, found '{0}'"
)]
pub struct InvalidOverrideId(String);

/// Parses an [`OverrideId`] as it is displayed.
impl FromStr for OverrideId {
    type Err = InvalidOverrideId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidOverrideId(text.to_owned());
        if let Some(source) = Self::of_sources(text) {
            return Ok(source);
        }
        // Names have no colons.
        let (source, name) = match text.rsplit_once(':') {
            Some((source, name)) => (Some(Self::of_sources(source).ok_or_else(invalid)?), name),
            None => (None, text),
        };
        let name: OverriddenName = name.parse().map_err(|_| invalid())?;
        Ok(match source {
            Some(source) => source.with_name(name),
            None => Self::Name(name),
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_shown() {
        for (text, has_source, has_name) in [
            ("192.0.2.7", true, false),
            ("2001:db8::5:1", true, false),
            ("1001", true, false),
            ("example.com", false, true),
            ("1001.", false, true),
            ("192.0.2.7.", false, true),
            ("10.0.0.0/8.", false, true),
            ("www.example.com A", false, true),
            ("192.0.2.7:example.com", true, true),
            ("192.0.2.0/24:1001", true, true),
            ("2001:db8::/64:www.example.com CLASS3 TXT", true, true),
            ("1001:.", true, true),
        ] {
            let id: OverrideId = text.parse().unwrap();
            assert_eq!(id.to_string(), text);
            assert_eq!(id.source().is_some(), has_source, "{text}");
            assert_eq!(id.name().is_some(), has_name, "{text}");
        }
        for text in ["", "a:b", "2001:db8:", "x:192.0.2.7", "7:a A B"] {
            assert!(text.parse::<OverrideId>().is_err(), "{text}");
        }
    }
}
