//! Builds frames byte by byte.

use std::net::IpAddr;

use anyhow::{Context as _, Result, bail};
use etherparse::{
    EtherType, Ethernet2Header, PacketBuilder, PacketBuilderStep, SingleVlanHeader, VlanId, VlanPcp,
};

use crate::link::{CLIENT_MAC, SERVER_MAC};

const TTL: u8 = 64;

/// The window in a SYN; any value will do.
const WINDOW: u16 = 64_240;

/// A VLAN tag in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// IEEE 802.1Q, the customer's (ethertype 0x8100).
    Customer(u16),
    /// IEEE 802.1ad, the provider's, outermost (ethertype 0x88a8).
    Service(u16),
}

/// A frame from the client's interface to the server's, without its payload.
#[derive(Clone, Debug)]
pub struct Frame {
    source: IpAddr,
    destination: IpAddr,
    tags: Vec<Tag>,
}

impl Frame {
    /// Makes an untagged frame between two addresses of one family.
    #[must_use]
    pub fn new(source: IpAddr, destination: IpAddr) -> Self {
        Self {
            source,
            destination,
            tags: Vec::new(),
        }
    }

    /// Adds a VLAN tag inside the present ones.
    #[must_use]
    pub fn tagged(mut self, tag: Tag) -> Self {
        self.tags.push(tag);
        self
    }

    /// Returns the frame with a UDP datagram.
    pub fn udp(&self, source: u16, destination: u16, payload: &[u8]) -> Result<Vec<u8>> {
        let mut frame = self.link_layer()?;
        self.ip()?
            .udp(source, destination)
            .write(&mut frame, payload)
            .context("cannot build a UDP datagram")?;
        Ok(frame)
    }

    /// Returns the frame with a TCP segment that asks for a new connection.
    pub fn tcp_syn(&self, source: u16, destination: u16, sequence: u32) -> Result<Vec<u8>> {
        self.tcp_fast_open(source, destination, sequence, &[])
    }

    /// Returns the frame with a TCP segment that asks for a new connection, with encoded options.
    pub fn tcp_syn_with(
        &self,
        source: u16,
        destination: u16,
        sequence: u32,
        options: &[u8],
    ) -> Result<Vec<u8>> {
        let mut frame = self.link_layer()?;
        self.ip()?
            .tcp(source, destination, sequence, WINDOW)
            .syn()
            .options_raw(options)
            .context("the options have no room")?
            .write(&mut frame, &[])
            .context("cannot build a TCP segment")?;
        Ok(frame)
    }

    /// Returns the frame with a TCP segment that asks for a new connection and carries its first data.
    pub fn tcp_fast_open(
        &self,
        source: u16,
        destination: u16,
        sequence: u32,
        payload: &[u8],
    ) -> Result<Vec<u8>> {
        let mut frame = self.link_layer()?;
        self.ip()?
            .tcp(source, destination, sequence, WINDOW)
            .syn()
            .write(&mut frame, payload)
            .context("cannot build a TCP segment")?;
        Ok(frame)
    }

    /// Returns the frame with a TCP segment that acknowledges all bytes before a sequence number.
    pub fn tcp_ack(
        &self,
        source: u16,
        destination: u16,
        sequence: u32,
        acknowledged: u32,
    ) -> Result<Vec<u8>> {
        self.tcp_data(source, destination, (sequence, acknowledged), &[])
    }

    /// Returns the frame with a TCP segment that carries data, with its sequence number and its
    /// acknowledgment number.
    pub fn tcp_data(
        &self,
        source: u16,
        destination: u16,
        (sequence, acknowledged): (u32, u32),
        payload: &[u8],
    ) -> Result<Vec<u8>> {
        let mut frame = self.link_layer()?;
        self.ip()?
            .tcp(source, destination, sequence, WINDOW)
            .ack(acknowledged)
            .write(&mut frame, payload)
            .context("cannot build a TCP segment")?;
        Ok(frame)
    }

    /// Returns the frame with a TCP segment that accepts a new connection.
    pub fn tcp_syn_ack(
        &self,
        source: u16,
        destination: u16,
        (sequence, acknowledged): (u32, u32),
    ) -> Result<Vec<u8>> {
        let mut frame = self.link_layer()?;
        self.ip()?
            .tcp(source, destination, sequence, WINDOW)
            .syn()
            .ack(acknowledged)
            .write(&mut frame, &[])
            .context("cannot build a TCP segment")?;
        Ok(frame)
    }

    /// Returns the frame with a ping: an ICMP or ICMPv6 echo request.
    pub fn echo(&self, payload: &[u8]) -> Result<Vec<u8>> {
        const IDENTIFIER: u16 = 1;
        const SEQUENCE: u16 = 1;
        let mut frame = self.link_layer()?;
        let ip = self.ip()?;
        match self.source {
            IpAddr::V4(_) => ip
                .icmpv4_echo_request(IDENTIFIER, SEQUENCE)
                .write(&mut frame, payload),
            IpAddr::V6(_) => ip
                .icmpv6_echo_request(IDENTIFIER, SEQUENCE)
                .write(&mut frame, payload),
        }
        .context("cannot build a ping")?;
        Ok(frame)
    }

    /// Returns the Ethernet header and the tags, up to the ethertype of the payload.
    fn link_layer(&self) -> Result<Vec<u8>> {
        let mut next = self
            .tags
            .iter()
            .map(|tag| tag.ether_type())
            .chain([self.ether_type()]);
        let mut bytes = Vec::new();
        Ethernet2Header {
            source: CLIENT_MAC,
            destination: SERVER_MAC,
            ether_type: next.next().unwrap_or(self.ether_type()),
        }
        .write(&mut bytes)?;
        for (tag, ether_type) in self.tags.iter().zip(next) {
            SingleVlanHeader {
                pcp: VlanPcp::ZERO,
                drop_eligible_indicator: false,
                vlan_id: VlanId::try_new(tag.id()).context("not a VLAN id")?,
                ether_type,
            }
            .write(&mut bytes)?;
        }
        Ok(bytes)
    }

    fn ip(&self) -> Result<PacketBuilderStep<etherparse::IpHeaders>> {
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => Ok(PacketBuilder::ipv4(
                source.octets(),
                destination.octets(),
                TTL,
            )),
            (IpAddr::V6(source), IpAddr::V6(destination)) => Ok(PacketBuilder::ipv6(
                source.octets(),
                destination.octets(),
                TTL,
            )),
            (source, destination) => {
                bail!("{source} and {destination} have different families")
            }
        }
    }

    fn ether_type(&self) -> EtherType {
        match self.source {
            IpAddr::V4(_) => EtherType::IPV4,
            IpAddr::V6(_) => EtherType::IPV6,
        }
    }
}

impl Tag {
    fn id(self) -> u16 {
        match self {
            Self::Customer(id) | Self::Service(id) => id,
        }
    }

    fn ether_type(self) -> EtherType {
        match self {
            Self::Customer(_) => EtherType::VLAN_TAGGED_FRAME,
            Self::Service(_) => EtherType::PROVIDER_BRIDGING,
        }
    }
}

#[cfg(test)]
mod tests {
    use etherparse::{SlicedPacket, TransportSlice};

    use super::*;

    #[test]
    fn stacks_tags_outermost_first() {
        let frame = Frame::new([10, 0, 0, 2].into(), [10, 0, 0, 1].into())
            .tagged(Tag::Service(7))
            .tagged(Tag::Customer(9))
            .udp(1000, 2000, b"hello")
            .unwrap();
        assert_eq!(frame[..6], SERVER_MAC);
        assert_eq!(frame[6..12], CLIENT_MAC);
        assert_eq!(frame[12..22], [0x88, 0xa8, 0, 7, 0x81, 0, 0, 9, 8, 0]);
        assert_eq!(frame.len(), 14 + 8 + 20 + 8 + 5);
    }

    #[test]
    fn a_syn_is_a_syn_and_nothing_else() {
        let (source, destination) = ("fd00::2".parse().unwrap(), "fd00::1".parse().unwrap());
        let frame = Frame::new(source, destination)
            .tcp_syn(1000, 443, 5)
            .unwrap();
        let packet = SlicedPacket::from_ethernet(&frame).unwrap();
        let Some(TransportSlice::Tcp(tcp)) = packet.transport else {
            panic!("{packet:?}");
        };
        assert!(tcp.syn() && !tcp.ack() && !tcp.rst());
        assert_eq!((tcp.source_port(), tcp.destination_port()), (1000, 443));
    }

    #[test]
    fn families_do_not_mix() {
        let frame = Frame::new([10, 0, 0, 2].into(), "fd00::1".parse().unwrap());
        assert!(frame.udp(1, 2, b"").is_err());
    }

    #[test]
    fn a_vlan_id_has_twelve_bits() {
        let frame = Frame::new([10, 0, 0, 2].into(), [10, 0, 0, 1].into());
        assert!(frame.tagged(Tag::Customer(4096)).udp(1, 2, b"").is_err());
    }
}
