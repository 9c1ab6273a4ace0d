//! Limits: their costs, their keys, and their names and interned ids.

mod id_format;
mod queue_settings;

pub use self::{
    id_format::{IPV4_RANGE, IPV6_RANGE, IdFormat, KeyPart, NameKind, Range},
    queue_settings::QueueSettings,
};

/// The maximum number of limits in a policy.
///
/// The decision keeps a packet's matching limits as the bits of one `u64`.
pub const MAX_LIMITS: u32 = 64;

/// The most limits on connections in a policy. Each connection stores one count id for each of them.
pub const MAX_CONNECTION_LIMITS: usize = 8;

/// The most limits on handshakes in a policy. Each handshake is charged to all of them.
pub const MAX_HANDSHAKE_LIMITS: usize = 8;

/// The number of interned ids, including 0, which is no limit's.
pub const MAX_LIMIT_IDS: u32 = 256;

/// The interned id of a limit. It replaces the name everywhere but in files and on screens.
///
/// Assigned at load and stable across reloads. Ids below [`FIRST_CUSTOM_ID`] belong to [`BUILT_IN`]; 0 is no limit's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(transparent)]
pub struct LimitId(pub u16);

/// The cost that a limit counts. Data kept from one policy to the next contains the numbers, so they must not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum Cost {
    /// One token per packet.
    Packets = 0,
    /// One token per byte of the frame, from the Ethernet header on.
    Bytes = 1,
    /// One token per TCP segment with SYN and without ACK; other packets are not counted.
    NewConnections = 2,
    /// The open TCP connections, as the network stack counts them. Packets spend nothing.
    Connections = 3,
    /// One token per completed TCP handshake, as the network stack reports it. Packets that may open a connection are
    /// checked against the bucket, but spend nothing.
    Handshakes = 4,
    /// One token per DNS query for a name that is not [cached](crate::cached_names); other packets are not
    /// counted.
    NewNames = 5,
}

impl Cost {
    /// Every cost.
    pub const ALL: [Self; 6] = [
        Self::Packets,
        Self::Bytes,
        Self::NewConnections,
        Self::Connections,
        Self::Handshakes,
        Self::NewNames,
    ];

    /// The name in configuration files and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Packets => "packets",
            Self::Bytes => "bytes",
            Self::NewConnections => "new-connections",
            Self::Connections => "connections",
            Self::Handshakes => "handshakes",
            Self::NewNames => "new-names",
        }
    }
}

/// A limit that the configuration can use by name without defining it.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// The name in configuration files.
    pub name: &'static str,
    /// The interned id, the same in every release.
    pub id: LimitId,
    /// The format of its ids: the keys of its buckets.
    pub id_format: IdFormat,
    /// Its cost.
    pub cost: Cost,
}

const fn built_in(name: &'static str, id: u16, id_format: IdFormat, cost: Cost) -> BuiltIn {
    BuiltIn {
        name,
        id: LimitId(id),
        id_format,
        cost,
    }
}

const IPV4: IdFormat = IdFormat::Ipv4RangeCidr {
    prefix_length: IPV4_RANGE,
};
const IPV6: IdFormat = IdFormat::Ipv6RangeCidr {
    prefix_length: IPV6_RANGE,
};

/// All built-in limits, by ascending interned id.
pub const BUILT_IN: [BuiltIn; 12] = [
    built_in("PacketsPerIPAddress", 1, IdFormat::IpAddress, Cost::Packets),
    built_in("PacketsPerIPv6Range", 2, IPV6, Cost::Packets),
    built_in("BytesPerIPAddress", 3, IdFormat::IpAddress, Cost::Bytes),
    built_in("BytesPerIPv6Range", 4, IPV6, Cost::Bytes),
    built_in(
        "NewConnectionsPerIPAddress",
        5,
        IdFormat::IpAddress,
        Cost::NewConnections,
    ),
    built_in("NewConnectionsPerIPv6Range", 6, IPV6, Cost::NewConnections),
    built_in("PacketsPerIPv4Range", 7, IPV4, Cost::Packets),
    built_in("BytesPerIPv4Range", 8, IPV4, Cost::Bytes),
    built_in("NewConnectionsPerIPv4Range", 9, IPV4, Cost::NewConnections),
    built_in("PacketsPerSubscriber", 10, IdFormat::RegId, Cost::Packets),
    built_in("BytesPerSubscriber", 11, IdFormat::RegId, Cost::Bytes),
    built_in(
        "NewConnectionsPerSubscriber",
        12,
        IdFormat::RegId,
        Cost::NewConnections,
    ),
];

/// The ids of the limits on answers, which have no name in configurations: per IPv4 range, per IPv6 range, and per
/// interface.
pub const ANSWER_LIMITS: [LimitId; 3] = [LimitId(13), LimitId(14), LimitId(15)];

/// The ids of the limits on connections by SYN cookies, with the same keys.
pub const COOKIE_LIMITS: [LimitId; 3] = [LimitId(16), LimitId(17), LimitId(18)];

/// The first interned id that is not reserved for built-in limits.
pub const FIRST_CUSTOM_ID: u16 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_ids_are_the_documented_ones() {
        for (position, limit) in (1u16..).zip(&BUILT_IN) {
            assert_eq!(limit.id, LimitId(position), "{}", limit.name);
        }
    }
}
