//! The kinds of ids: the part of a packet that names a limit's bucket.
//!
//! [`IdFormat::row`] and [`KeyPart::row`] are the table of all kinds of keys. All code reads the table, so a new kind
//! needs only a row here and its source in the packet, in [`KeyMapping`](crate::key::KeyMapping).

use crate::address::Family;

/// The part of a packet that names a limit's bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IdFormat {
    /// One IPv4 (/32) or IPv6 (/128) source address.
    IpAddress,
    /// The source's IPv4 network.
    Ipv4RangeCidr {
        /// The number of leading address bits that name the network.
        prefix_length: u8,
    },
    /// The source's IPv6 network.
    Ipv6RangeCidr {
        /// The number of leading address bits that name the network.
        prefix_length: u8,
    },
    /// The subscriber that owns the source's prefix, of either family.
    RegId,
    /// The destination address, with one bucket for all sources.
    Destination,
    /// The policy's zone that contains the name of the packet's DNS question, with one bucket for all sources.
    Zone,
    /// The registered domain of the packet's DNS question, with one bucket for all sources.
    Domain,
    /// The packet's DNS question: name, type and class, with one bucket for all sources.
    Question,
    /// The policy's server name that matches the name in the client's hello, with one bucket for all sources.
    ServerName,
    /// The interface that the packet came in on, with one bucket for all sources.
    Total,
}

/// The default prefix length of [`IdFormat::Ipv4RangeCidr`].
pub const IPV4_RANGE: u8 = 24;

/// The default prefix length of [`IdFormat::Ipv6RangeCidr`].
pub const IPV6_RANGE: u8 = 48;

/// The properties of a format.
struct Row {
    name: &'static str,
    id: Id,
}

/// The contents of an id.
#[derive(Clone, Copy)]
enum Id {
    /// The source address.
    Address,
    /// The source's network.
    Range(Range),
    /// Any other part of the packet.
    Other(KeyPart),
}

/// The source's networks of one family and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The family.
    pub family: Family,
    /// The number of leading address bits that name the network.
    pub prefix_length: u8,
    /// The minimum and maximum configurable length. Registries allocate no shorter prefixes.
    pub lengths: [u8; 2],
}

/// The part of a packet that names a key, other than the source's address. Data kept from one policy to the next
/// contains the discriminants. In that data, 0 and the numbers of [`Family`] stand for ranges of sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum KeyPart {
    /// The subscriber that owns the source's prefix.
    Subscriber = 1,
    /// The interface that the packet came in on, by the daemon's number for it.
    Interface = 2,
    /// The host, all interfaces together; its number is 0.
    Host = 3,
    /// The destination's address.
    Destination = 5,
    /// The zone of the packet's DNS question, by a number derived from its name.
    Zone = 8,
    /// The packet's DNS question, by a keyed hash.
    Question = 9,
    /// The registered domain of the packet's DNS question, by a keyed hash.
    Domain = 10,
    /// The server name of the packet's connection, by a number derived from its name.
    ServerName = 11,
}

/// The part of a packet's DNS question that names a key, alone or beside the source. It has the discriminants of
/// [`KeyPart`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
#[repr(u8)]
pub enum NameKind {
    /// [`KeyPart::Zone`].
    Zone = KeyPart::Zone as u8,
    /// [`KeyPart::Question`].
    Question = KeyPart::Question as u8,
    /// [`KeyPart::Domain`].
    Domain = KeyPart::Domain as u8,
}

impl NameKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Zone, Self::Domain, Self::Question];

    /// The format for keys that this part alone names.
    #[must_use]
    pub const fn alone(self) -> IdFormat {
        match self {
            Self::Zone => IdFormat::Zone,
            Self::Domain => IdFormat::Domain,
            Self::Question => IdFormat::Question,
        }
    }

    /// The name in configuration files and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.alone().name()
    }

    /// The variant with this discriminant; `None`: the question does not name the key.
    #[must_use]
    #[inline(always)]
    pub const fn of_number(number: u8) -> Option<Self> {
        match KeyPart::of_number(number) {
            Some(key_part) => key_part.name_kind(),
            None => None,
        }
    }
}

/// The properties of a [`KeyPart`].
struct KeyPartRow {
    shared_by: &'static str,
    of_all_sources: bool,
    why_no_overrides: Option<&'static str>,
}

impl IdFormat {
    /// Every format; ranges with their default lengths.
    pub const ALL: [Self; 10] = [
        Self::IpAddress,
        Self::Ipv4RangeCidr {
            prefix_length: IPV4_RANGE,
        },
        Self::Ipv6RangeCidr {
            prefix_length: IPV6_RANGE,
        },
        Self::RegId,
        Self::Destination,
        Self::Zone,
        Self::Domain,
        Self::Question,
        Self::ServerName,
        Self::Total,
    ];

    const fn row(self) -> Row {
        match self {
            Self::IpAddress => Row {
                name: "ipAddress",
                id: Id::Address,
            },
            Self::Ipv4RangeCidr { prefix_length } => Row {
                name: "ipv4RangeCIDR",
                id: Id::Range(Range {
                    family: Family::V4,
                    prefix_length,
                    lengths: [8, 32],
                }),
            },
            Self::Ipv6RangeCidr { prefix_length } => Row {
                name: "ipv6RangeCIDR",
                id: Id::Range(Range {
                    family: Family::V6,
                    prefix_length,
                    lengths: [16, 128],
                }),
            },
            Self::RegId => Row {
                name: "regId",
                id: Id::Other(KeyPart::Subscriber),
            },
            Self::Destination => Row {
                name: "destination",
                id: Id::Other(KeyPart::Destination),
            },
            Self::Zone => Row {
                name: "zone",
                id: Id::Other(KeyPart::Zone),
            },
            Self::Domain => Row {
                name: "domain",
                id: Id::Other(KeyPart::Domain),
            },
            Self::Question => Row {
                name: "question",
                id: Id::Other(KeyPart::Question),
            },
            Self::ServerName => Row {
                name: "server-name",
                id: Id::Other(KeyPart::ServerName),
            },
            Self::Total => Row {
                name: "total",
                id: Id::Other(KeyPart::Interface),
            },
        }
    }

    /// The name in configuration files and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Whether a limit of this format counts packets of the family.
    #[must_use]
    pub fn is_for(self, family: Family) -> bool {
        self.range().is_none_or(|range| range.family == family)
    }

    /// The number of a source's leading bits that name the bucket; `None`: another part of the packet names it, or the
    /// limit does not count this family.
    #[must_use]
    pub const fn prefix_length(self, family: Family) -> Option<u8> {
        match (self.row().id, family) {
            (Id::Address, Family::V4) => Some(32),
            (Id::Address, Family::V6) => Some(128),
            (Id::Range(range), _) if range.family as u64 == family as u64 => {
                Some(range.prefix_length)
            }
            _ => None,
        }
    }

    /// The networks that have a bucket each; `None`: the ids are not networks.
    #[must_use]
    pub const fn range(self) -> Option<Range> {
        match self.row().id {
            Id::Range(range) => Some(range),
            Id::Address | Id::Other(_) => None,
        }
    }

    /// The format with networks of this length. Formats without networks stay unchanged.
    #[must_use]
    pub const fn with_prefix_length(self, prefix_length: u8) -> Self {
        match self {
            Self::Ipv4RangeCidr { .. } => Self::Ipv4RangeCidr { prefix_length },
            Self::Ipv6RangeCidr { .. } => Self::Ipv6RangeCidr { prefix_length },
            other => other,
        }
    }

    /// The part of the packet's DNS question that alone names a bucket; `None`: the question does not.
    #[must_use]
    pub const fn name_kind(self) -> Option<NameKind> {
        match self.key_part() {
            Some(key_part) => key_part.name_kind(),
            None => None,
        }
    }

    /// The part of the packet that names a bucket; `None`: the source's address does.
    #[must_use]
    pub const fn key_part(self) -> Option<KeyPart> {
        match self.row().id {
            Id::Other(key_part) => Some(key_part),
            Id::Address | Id::Range(_) => None,
        }
    }
}

impl KeyPart {
    const fn row(self) -> KeyPartRow {
        match self {
            Self::Subscriber => KeyPartRow {
                shared_by: "a subscriber's sources share",
                of_all_sources: false,
                why_no_overrides: None,
            },
            Self::Interface | Self::Host => KeyPartRow {
                shared_by: "all sources share",
                of_all_sources: true,
                why_no_overrides: Some("it has one bucket for all sources"),
            },
            Self::Destination => KeyPartRow {
                shared_by: "all sources share",
                of_all_sources: true,
                why_no_overrides: Some(
                    "an override is for sources; for one destination, add a limit that matches it, \
                     and `otherwise: true` to this one",
                ),
            },
            Self::Zone | Self::Domain | Self::Question | Self::ServerName => KeyPartRow {
                shared_by: "all sources share",
                of_all_sources: true,
                why_no_overrides: None,
            },
        }
    }

    /// The part of the packet's DNS question that names such a key; `None`: the question does not.
    #[must_use]
    #[inline(always)]
    pub const fn name_kind(self) -> Option<NameKind> {
        match self {
            Self::Zone => Some(NameKind::Zone),
            Self::Domain => Some(NameKind::Domain),
            Self::Question => Some(NameKind::Question),
            Self::Subscriber
            | Self::Interface
            | Self::Host
            | Self::Destination
            | Self::ServerName => None,
        }
    }

    /// The variant with this discriminant; `None`: the source's address names the key.
    #[must_use]
    #[inline(always)]
    pub const fn of_number(number: u8) -> Option<Self> {
        const SUBSCRIBER: u8 = KeyPart::Subscriber as u8;
        const INTERFACE: u8 = KeyPart::Interface as u8;
        const HOST: u8 = KeyPart::Host as u8;
        const DESTINATION: u8 = KeyPart::Destination as u8;
        const ZONE: u8 = KeyPart::Zone as u8;
        const QUESTION: u8 = KeyPart::Question as u8;
        const DOMAIN: u8 = KeyPart::Domain as u8;
        const SERVER_NAME: u8 = KeyPart::ServerName as u8;
        match number {
            SUBSCRIBER => Some(Self::Subscriber),
            INTERFACE => Some(Self::Interface),
            HOST => Some(Self::Host),
            DESTINATION => Some(Self::Destination),
            ZONE => Some(Self::Zone),
            QUESTION => Some(Self::Question),
            DOMAIN => Some(Self::Domain),
            SERVER_NAME => Some(Self::ServerName),
            _ => None,
        }
    }

    /// Whether such a key is a name or a question.
    #[must_use]
    pub const fn is_name(self) -> bool {
        matches!(
            self,
            Self::Zone | Self::Domain | Self::Question | Self::ServerName
        )
    }

    /// The parties that share such a key's budget. A drop proves nothing against any one of them.
    #[must_use]
    pub const fn shared_by(self) -> &'static str {
        self.row().shared_by
    }

    /// Whether all sources share such a key's budget, so that any of them can use it up.
    #[must_use]
    pub const fn is_of_all_sources(self) -> bool {
        self.row().of_all_sources
    }

    /// The reason why such keys cannot have overrides; `None`: they can.
    #[must_use]
    pub const fn why_no_overrides(self) -> Option<&'static str> {
        self.row().why_no_overrides
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_networks_of_a_family_addresses_or_numbers() {
        let families = [Family::V4, Family::V6];
        for format in IdFormat::ALL {
            for family in families {
                let length = format.prefix_length(family);
                let is_of_source = format.key_part().is_none() && format.is_for(family);
                assert_eq!(length.is_some(), is_of_source, "{format:?}");
            }
            let Some(range) = format.range() else {
                assert_eq!(format.with_prefix_length(20), format);
                continue;
            };
            let [least, most] = range.lengths;
            assert!((least..=most).contains(&range.prefix_length));
            let other = format.with_prefix_length(20);
            assert_eq!(other.prefix_length(range.family), Some(20));
            assert_eq!(other.name(), format.name());
        }
    }

    /// In a key, the number is stored in the field that ranges use for their family.
    #[test]
    fn no_number_is_that_of_a_family() {
        let mut numbers = (0..=u8::MAX).filter(|number| KeyPart::of_number(*number).is_some());
        assert!(numbers.all(|number| ![0, Family::V4 as u8, Family::V6 as u8].contains(&number)));
    }
}
