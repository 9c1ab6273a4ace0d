//! Which packets a limit counts.

use std::{fmt, ops::RangeInclusive};

use ipnet::IpNet;

/// Ports from the first to the last, both included.
pub type PortRange = RangeInclusive<u16>;

/// Which packets a limit counts: those that every part matches. A part that is left out
/// matches every packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// IP protocol numbers; empty: all.
    pub protocols: Vec<u8>,
    /// Source ports; empty: all, and packets without ports too.
    pub source_ports: Vec<PortRange>,
    /// Destination ports; empty: all, and packets without ports too.
    pub destination_ports: Vec<PortRange>,
    /// The TCP flags; `None`: all, and packets that are not TCP too.
    pub tcp_flags: Option<TcpFlags>,
    /// Destination prefixes; empty: all.
    pub destinations: Vec<IpNet>,
    /// What becomes of fragments whose ports and flags cannot be known.
    pub fragments: Fragments,
}

/// TCP flags that must be set, and others that must not be; the bits are those of byte 13 of
/// the header (RFC 9293): FIN is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpFlags {
    /// Must be set.
    pub set: u8,
    /// Must not be set.
    pub clear: u8,
}

/// What a limit that matches ports or flags does with the later fragments of a datagram:
/// only the first one has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fragments {
    /// Counts them as if they matched.
    #[default]
    Count,
    /// Does not count them.
    Ignore,
}

impl TcpFlags {
    /// The flags by name, from the lowest bit on.
    pub const NAMES: [&'static str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];
}

/// As configuration files have it: `syn,!ack`.
impl fmt::Display for TcpFlags {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (bit, name) in Self::NAMES.iter().enumerate() {
            let not = match (self.set >> bit & 1, self.clear >> bit & 1) {
                (1, _) => "",
                (_, 1) => "!",
                _ => continue,
            };
            write!(formatter, "{separator}{not}{name}")?;
            separator = ",";
        }
        Ok(())
    }
}

impl Match {
    /// Whether it depends on the transport header, which later fragments lack.
    #[must_use]
    pub const fn needs_transport(&self) -> bool {
        self.needs_ports() || self.tcp_flags.is_some()
    }

    /// Whether it depends on ports.
    #[must_use]
    pub const fn needs_ports(&self) -> bool {
        !self.source_ports.is_empty() || !self.destination_ports.is_empty()
    }

    /// Whether every packet matches.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }
}
