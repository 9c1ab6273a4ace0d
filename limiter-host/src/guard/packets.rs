//! Packets of one kind that this machine receives, and whether a limit counts them.

use std::{net::IpAddr, ops::RangeInclusive};

use limiter_common::{limit::Cost, packet::TcpState};
use limiter_policy::policy::{Limit, TcpFlags};

pub(super) struct Packets {
    pub(super) protocol: u8,
    pub(super) ports: Option<Ports>,
    /// `None`: not TCP.
    pub(super) tcp_flags: Option<u8>,
    /// The ICMP types of such packets; empty: not ICMP.
    pub(super) icmp_types: &'static [u8],
    /// The address of this machine to which they go; `None`: any.
    pub(super) destination: Option<IpAddr>,
}

pub(super) struct Ports {
    pub(super) source: RangeInclusive<u16>,
    pub(super) destination: RangeInclusive<u16>,
}

impl Packets {
    pub(super) fn may_open_connections(&self) -> bool {
        self.tcp_flags == Some(TcpFlags::SYN)
    }

    /// Returns whether a limit counts some of the packets, regardless of their source.
    pub(super) fn are_counted_by(&self, limit: &Limit) -> bool {
        let matching = &limit.matching;
        let meets = |ranges: &[RangeInclusive<u16>], ports: &RangeInclusive<u16>| {
            let mut ranges = ranges.iter();
            ranges.any(|range| range.start() <= ports.end() && ports.start() <= range.end())
        };
        let ports = match &self.ports {
            None => !matching.needs_ports(),
            Some(Ports {
                source,
                destination,
            }) => {
                (matching.source_ports.is_empty() || meets(&matching.source_ports, source))
                    && (matching.destination_ports.is_empty()
                        || meets(&matching.destination_ports, destination))
            }
        };
        let flags = match (matching.tcp_flags, self.tcp_flags) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(wanted), Some(flags)) => {
                flags & wanted.set == wanted.set && flags & wanted.clear == 0
            }
        };
        let types = &matching.icmp_types;
        let has_type = types.is_empty()
            || self
                .icmp_types
                .iter()
                .any(|number| types.names(self.protocol, *number));
        // Any segment except a SYN belongs to an open connection.
        let states = limit.tcp_states();
        let state = if self.may_open_connections() {
            TcpState::New
        } else {
            TcpState::Established
        };
        let is_of_state = states.is_empty() || self.tcp_flags.is_some() && states.contains(&state);
        let destination = self.destination.is_none_or(|destination| {
            let mut destinations = matching.destinations.iter();
            matching.destinations.is_empty() || destinations.any(|to| to.contains(&destination))
        });
        (matching.protocols.is_empty() || matching.protocols.contains(&self.protocol))
            && (matches!(limit.cost, Cost::Packets | Cost::Bytes) || self.may_open_connections())
            && ports
            && flags
            && has_type
            && is_of_state
            && destination
    }
}
