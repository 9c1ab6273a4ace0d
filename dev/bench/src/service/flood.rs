//! The floods at a server: their packets, sources and rates.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use anyhow::{Context as _, Result};
use bench_common::{Group, Origin, Source};
use serde::Serialize;
use testbed::Frame;

use super::{dns, server::Service};
use crate::scenario::{SERVER_V4, SERVER_V6};

/// The packets of a flood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attack {
    /// Valid DNS queries.
    Queries,
    /// TCP segments that ask for a connection.
    Syns,
    /// TCP segments that belong to no connection.
    Acks,
}

/// How fast a flood comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rate {
    /// There is no flood.
    None,
    /// This many packets per second.
    PerSecond(u64),
    /// As many as the machine makes, independent of the defence.
    Most,
}

/// A flood at a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flood {
    pub(crate) name: &'static str,
    pub(crate) service: Service,
    pub(crate) attack: Attack,
    pub(crate) origin: Origin,
    pub(crate) rate: Rate,
    /// After how long each source sends a second packet, if it does.
    pub(crate) again_after: Option<Duration>,
    /// How long before the flood its sources complete a handshake, if they do.
    pub(crate) handshakes: Option<Duration>,
    /// Whether known clients are known only by their visits before the flood, and not trusted.
    pub(crate) by_visits: bool,
    /// Whether a quick run measures it.
    pub(crate) quick: bool,
}

impl Flood {
    const fn new(name: &'static str, attack: Attack, origin: Origin, rate: Rate) -> Self {
        let service = match attack {
            Attack::Queries => Service::Dns,
            Attack::Syns | Attack::Acks => Service::Web,
        };
        Self {
            name,
            service,
            attack,
            origin,
            rate,
            again_after: None,
            handshakes: None,
            by_visits: false,
            quick: false,
        }
    }

    const fn quick(self) -> Self {
        Self {
            quick: true,
            ..self
        }
    }

    /// Returns whether the addresses of clients and sources are IPv6.
    pub(crate) const fn is_v6(&self) -> bool {
        self.origin.is_v6()
    }

    /// Returns whether it forges this client's addresses.
    pub(crate) const fn forges(&self, group: Group, member: u32) -> bool {
        self.origin.forges(group, member)
    }

    /// Returns whether new clients differ from its sources: the sources do not retry as unanswered
    /// clients do, and have completed no handshake.
    pub(crate) const fn spares_new_clients(&self) -> bool {
        self.again_after.is_none() && self.handshakes.is_none()
    }

    /// Returns the server's address in the flood's family.
    pub(crate) fn server(&self) -> Result<IpAddr> {
        if self.is_v6() {
            Ok(SERVER_V6.parse()?)
        } else {
            Ok(Ipv4Addr::from(SERVER_V4).into())
        }
    }

    /// Builds one of its frames, with any source, and valid checksums.
    pub(super) fn frame(&self) -> Result<Vec<u8>> {
        const SOURCE_PORT: u16 = 4096;
        let source: IpAddr = match self.origin.source(0) {
            Source::V4(address) => Ipv4Addr::from(address).into(),
            Source::V6(high, low) => {
                std::net::Ipv6Addr::from(u128::from(high) << 64 | u128::from(low)).into()
            }
        };
        let frame = Frame::new(source, self.server()?);
        let port = self.service.port();
        match self.attack {
            Attack::Queries => frame.udp(SOURCE_PORT, port, &dns::query(0)),
            Attack::Syns => frame.tcp_syn(SOURCE_PORT, port, 1),
            Attack::Acks => frame.tcp_ack(SOURCE_PORT, port, 1, 1),
        }
        .with_context(|| format!("the flood {}", self.name))
    }
}

const SLOW: Rate = Rate::PerSecond(100_000);
const FAST: Rate = Rate::PerSecond(300_000);

/// More than the least `fresh-for`, a minute.
pub(super) const SENIOR: Duration = Duration::from_secs(62);

/// All floods, in the order of the results.
pub(crate) const FLOODS: [Flood; 22] = {
    use Attack::{Acks, Queries, Syns};
    use Origin::{AnyV4, Bots, KnownV4, KnownV6, OneV6Prefix};
    [
        Flood::new("DNS, no flood", Queries, AnyV4, Rate::None).quick(),
        Flood::new("DNS, IPv4, 100 k/s", Queries, AnyV4, SLOW),
        Flood::new("DNS, IPv4, 300 k/s", Queries, AnyV4, FAST).quick(),
        Flood {
            by_visits: true,
            ..Flood::new("DNS, known by visits, 300 k/s", Queries, AnyV4, FAST)
        },
        Flood::new("DNS, IPv4, most", Queries, AnyV4, Rate::Most),
        Flood::new("DNS, IPv6 /32, 300 k/s", Queries, OneV6Prefix, FAST),
        Flood::new("DNS, IPv6 /32, most", Queries, OneV6Prefix, Rate::Most),
        Flood {
            handshakes: Some(Duration::ZERO),
            ..Flood::new(
                "DNS, botnet that handshakes, most",
                Queries,
                Bots,
                Rate::Most,
            )
            .quick()
        },
        Flood {
            handshakes: Some(SENIOR),
            ..Flood::new(
                "DNS, botnet that handshakes a minute before, 300 k/s",
                Queries,
                Bots,
                FAST,
            )
        },
        Flood {
            again_after: Some(Duration::from_secs(1)),
            ..Flood::new("DNS, each source twice, 300 k/s", Queries, AnyV4, FAST).quick()
        },
        Flood::new("DNS, known clients forged, 300 k/s", Queries, KnownV4, FAST).quick(),
        Flood::new("DNS, known /64s forged, 300 k/s", Queries, KnownV6, FAST),
        Flood::new("web, no flood", Syns, AnyV4, Rate::None).quick(),
        Flood::new("web, SYNs, 100 k/s", Syns, AnyV4, SLOW),
        Flood::new("web, SYNs, 300 k/s", Syns, AnyV4, FAST).quick(),
        Flood::new("web, SYNs, most", Syns, AnyV4, Rate::Most),
        Flood::new("web, SYNs, IPv6 /32, 300 k/s", Syns, OneV6Prefix, FAST),
        Flood::new("web, known clients forged, 300 k/s", Syns, KnownV4, FAST),
        Flood::new("web, known /64s forged, 300 k/s", Syns, KnownV6, FAST),
        Flood::new("web, ACKs, 300 k/s", Acks, AnyV4, FAST),
        Flood::new("web, ACKs, most", Acks, AnyV4, Rate::Most),
        Flood {
            handshakes: Some(Duration::ZERO),
            ..Flood::new(
                "web, SYNs, botnet that handshakes, most",
                Syns,
                Bots,
                Rate::Most,
            )
        },
    ]
};

impl Serialize for Flood {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use bench_common::{Forge, Pace, Times, VICTIMS};
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};

    use super::*;

    struct NoTimes;

    impl Times for NoTimes {
        fn slots(&self) -> u64 {
            1
        }

        fn at(&self, _: u64) -> u64 {
            0
        }

        fn set(&self, _: u64, _: u64) {}
    }

    /// Checks every checksum; returns the source, its port, and the packet's own number.
    fn check(bytes: &[u8], flood: &Flood) -> (IpAddr, u16, u32) {
        let packet = SlicedPacket::from_ethernet(bytes).unwrap();
        let (ports, number, checksum, right) = match (&packet.net, &packet.transport) {
            (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Udp(udp))) => (
                (udp.source_port(), udp.destination_port()),
                udp.payload()[..2]
                    .iter()
                    .fold(0, |id, byte| id << 8 | u32::from(*byte)),
                udp.checksum(),
                udp.to_header()
                    .calc_checksum_ipv4(&ip.header().to_header(), udp.payload())
                    .unwrap(),
            ),
            (Some(NetSlice::Ipv6(ip)), Some(TransportSlice::Udp(udp))) => (
                (udp.source_port(), udp.destination_port()),
                udp.payload()[..2]
                    .iter()
                    .fold(0, |id, byte| id << 8 | u32::from(*byte)),
                udp.checksum(),
                udp.to_header()
                    .calc_checksum_ipv6(&ip.header().to_header(), udp.payload())
                    .unwrap(),
            ),
            (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Tcp(tcp))) => (
                (tcp.source_port(), tcp.destination_port()),
                tcp.sequence_number(),
                tcp.checksum(),
                tcp.calc_checksum_ipv4(ip.header().source(), ip.header().destination())
                    .unwrap(),
            ),
            (Some(NetSlice::Ipv6(ip)), Some(TransportSlice::Tcp(tcp))) => (
                (tcp.source_port(), tcp.destination_port()),
                tcp.sequence_number(),
                tcp.checksum(),
                tcp.calc_checksum_ipv6(ip.header().source(), ip.header().destination())
                    .unwrap(),
            ),
            other => panic!("{other:?}"),
        };
        assert_eq!(checksum, right, "{}", flood.name);
        assert!(ports.0 >= 1024);
        assert_eq!(ports.1, flood.service.port());
        match &packet.net {
            Some(NetSlice::Ipv4(ip)) => {
                let header = ip.header();
                let right = header.to_header().calc_header_checksum();
                assert_eq!(header.header_checksum(), right, "{}", flood.name);
                assert_eq!(
                    IpAddr::from(header.destination_addr()),
                    flood.server().unwrap()
                );
                (header.source_addr().into(), ports.0, number)
            }
            Some(NetSlice::Ipv6(ip)) => {
                let header = ip.header();
                assert_eq!(
                    IpAddr::from(header.destination_addr()),
                    flood.server().unwrap()
                );
                (header.source_addr().into(), ports.0, number)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_packet_of_every_flood_is_valid_and_has_its_own_numbers() {
        for flood in FLOODS {
            let template = flood.frame().unwrap();
            check(&template, &flood);
            let length = template.len();
            // A byte array might start at an odd address.
            let mut words: Vec<u16> = template
                .chunks(2)
                .map(|word| u16::from_ne_bytes([word[0], *word.get(1).unwrap_or(&0)]))
                .collect();
            let start = words.as_mut_ptr().addr();
            // SAFETY: the bytes are the words', which outlive the frame and begin at an even
            // address.
            let frame = unsafe { bench_common::Frame::new(start, start + length) };
            let mut forge = Forge::new(&frame, flood.origin, Pace::UNBOUNDED, 0).unwrap();
            let (mut sources, mut ports, mut numbers) =
                (HashSet::new(), HashSet::new(), HashSet::new());
            for now in 0..1000 {
                assert!(forge.makes(&frame, now, &NoTimes));
                let bytes: Vec<_> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
                let (source, port, number) = check(&bytes[..length], &flood);
                sources.insert(source);
                ports.insert(port);
                numbers.insert(number);
            }
            let least = match flood.origin {
                Origin::KnownV4 => usize::try_from(VICTIMS).unwrap(),
                _ => 100,
            };
            assert!(
                sources.len() >= least,
                "{}: {} sources",
                flood.name,
                sources.len()
            );
            assert!(ports.len() > 900 && numbers.len() > 900, "{}", flood.name);
            assert_eq!(forge.sent, 1000);
        }
    }

    #[test]
    fn names_are_different() {
        let names: HashSet<_> = FLOODS.iter().map(|flood| flood.name).collect();
        assert_eq!(names.len(), FLOODS.len());
    }
}
