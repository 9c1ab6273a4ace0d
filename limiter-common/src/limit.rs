//! What a limit is: whose budget, counted in what, under which name and interned id.

/// How many limits one policy may hold.
///
/// A packet's matching limits are kept as the bits of one `u64` while it is decided on.
pub const MAX_LIMITS: u32 = 64;

/// How many interned ids exist, 0 (which names nothing) included.
pub const MAX_LIMIT_IDS: u32 = 256;

/// The interned id of a limit: what its name is everywhere but in files and on screens.
///
/// Given at load, stable across reloads. 1 to 31 belong to [`BUILT_IN`]; 0 names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct LimitId(pub u16);

/// Whose budget a limit is: what of a packet's source names the bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IdFormat {
    /// One IPv4 (/32) or IPv6 (/128) address.
    IpAddress,
    /// An IPv4 network, a /24.
    Ipv4RangeCidr,
    /// An IPv6 network, a /48.
    Ipv6RangeCidr,
}

impl IdFormat {
    /// The format's name in configuration files and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::IpAddress => "ipAddress",
            Self::Ipv4RangeCidr => "ipv4RangeCIDR",
            Self::Ipv6RangeCidr => "ipv6RangeCIDR",
        }
    }

    /// How many leading bits of an IPv4 source name the bucket; `None`: the limit is not
    /// for IPv4.
    #[must_use]
    pub const fn ipv4_prefix_length(self) -> Option<u8> {
        match self {
            Self::IpAddress => Some(32),
            Self::Ipv4RangeCidr => Some(24),
            Self::Ipv6RangeCidr => None,
        }
    }

    /// How many leading bits of an IPv6 source name the bucket; `None`: the limit is not
    /// for IPv6.
    #[must_use]
    pub const fn ipv6_prefix_length(self) -> Option<u8> {
        match self {
            Self::IpAddress => Some(128),
            Self::Ipv4RangeCidr => None,
            Self::Ipv6RangeCidr => Some(48),
        }
    }
}

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cost {
    /// One token a packet.
    Packets,
    /// One token a byte of the frame, from the Ethernet header on.
    Bytes,
    /// One token a TCP segment with SYN and without ACK; other packets are not counted.
    NewConnections,
}

impl Cost {
    /// The unit's name in configuration files and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Packets => "packets",
            Self::Bytes => "bytes",
            Self::NewConnections => "new-connections",
        }
    }
}

/// A limit that is there by name, without a definition of its own.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// Its name in configuration files.
    pub name: &'static str,
    /// Its interned id, the same in every release.
    pub id: LimitId,
    /// Whose budget it is.
    pub id_format: IdFormat,
    /// What it counts.
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

/// Every built-in limit, in the order of its interned id.
pub const BUILT_IN: [BuiltIn; 9] = [
    built_in("PacketsPerIPAddress", 1, IdFormat::IpAddress, Cost::Packets),
    built_in(
        "PacketsPerIPv6Range",
        2,
        IdFormat::Ipv6RangeCidr,
        Cost::Packets,
    ),
    built_in("BytesPerIPAddress", 3, IdFormat::IpAddress, Cost::Bytes),
    built_in("BytesPerIPv6Range", 4, IdFormat::Ipv6RangeCidr, Cost::Bytes),
    built_in(
        "NewConnectionsPerIPAddress",
        5,
        IdFormat::IpAddress,
        Cost::NewConnections,
    ),
    built_in(
        "NewConnectionsPerIPv6Range",
        6,
        IdFormat::Ipv6RangeCidr,
        Cost::NewConnections,
    ),
    built_in(
        "PacketsPerIPv4Range",
        7,
        IdFormat::Ipv4RangeCidr,
        Cost::Packets,
    ),
    built_in("BytesPerIPv4Range", 8, IdFormat::Ipv4RangeCidr, Cost::Bytes),
    built_in(
        "NewConnectionsPerIPv4Range",
        9,
        IdFormat::Ipv4RangeCidr,
        Cost::NewConnections,
    ),
];

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
