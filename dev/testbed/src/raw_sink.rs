//! Counts arriving frames.

use std::{io::Read as _, net::IpAddr};

use anyhow::Result;
use etherparse::{LaxNetSlice, LaxSlicedPacket};

use crate::{
    counter::Counter,
    namespace::Namespace,
    packet_socket::{self, Traffic},
    socket,
    tally::Tally,
};

/// Counts every frame that passes XDP on an interface, per source address, even if the network stack drops it
/// later. The kernel removes a frame's outermost VLAN tag first: its four bytes do not count.
#[derive(Debug)]
pub struct RawSink {
    counter: Counter,
}

impl RawSink {
    /// Starts to count frames on an interface of a namespace.
    pub fn new(namespace: &Namespace, interface: &str) -> Result<Self> {
        let packets = packet_socket::open(namespace, interface, Traffic::Everything)?;
        socket::ignore_outgoing(&packets)?;
        let mut frame = vec![0; 1 << 16];
        let counter = Counter::start(packets, move |mut packets| {
            let bytes = packets.read(&mut frame)?;
            Ok((source(&frame[..bytes]), bytes))
        })?;
        Ok(Self { counter })
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn so_far(&self) -> Tally {
        self.counter.so_far()
    }

    /// Returns the counts, after every arrived frame is read.
    pub fn finish(self) -> Result<Tally> {
        self.counter.finish()
    }
}

fn source(frame: &[u8]) -> Option<IpAddr> {
    match LaxSlicedPacket::from_ethernet(frame).ok()?.net? {
        LaxNetSlice::Ipv4(ip) => Some(ip.header().source_addr().into()),
        LaxNetSlice::Ipv6(ip) => Some(ip.header().source_addr().into()),
        LaxNetSlice::Arp(_) => None,
    }
}
