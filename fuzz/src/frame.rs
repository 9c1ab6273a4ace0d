//! Any bytes as a frame: the facts that are found are those that are there.

use std::net::IpAddr;

use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice, err::Layer};
use limiter_common::{
    address::Address,
    packet::{self, Facts, Transport},
    reason::Reason,
};
use limiter_userspace::native::BytesFrame;

/// Longer than any frame is padded, so that every header may end up behind it.
const PADDING: [u8; 64] = [0xff; 64];

/// Every header that is looked at ends before this, but for the wildest chains of extensions.
const CUTS: usize = 160;

/// Parses a frame, whole, padded and cut short.
pub fn run(data: &[u8]) {
    let facts = parse(data);
    if let Ok(facts) = facts {
        agrees_with_etherparse(data, &facts);
    }
    // What the frame's own lengths leave out is looked at by nobody.
    if matches!(facts, Ok(_) | Err(Reason::NotIp)) {
        assert_same(facts, parse(&[data, &PADDING].concat()));
    }
    for end in 0..data.len().min(CUTS) {
        let cut = parse(&data[..end]);
        if cut.is_ok() {
            assert_same(cut, facts);
        }
    }
}

fn parse(data: &[u8]) -> Result<Facts, Reason> {
    let mut facts = Facts::NONE;
    packet::parse(&BytesFrame(data), &mut facts)?;
    assert_eq!(facts.length, data.len() as u64);
    Ok(facts)
}

/// The same facts, but for the length.
fn assert_same(one: Result<Facts, Reason>, other: Result<Facts, Reason>) {
    let without_length = |facts: Facts| Facts { length: 0, ..facts };
    assert_eq!(one.map(without_length), other.map(without_length));
}

/// Somebody else's parser finds the same, where it finds anything.
fn agrees_with_etherparse(data: &[u8], facts: &Facts) {
    let Ok(other) = LaxSlicedPacket::from_ethernet(data) else {
        return;
    };
    let (source, destination): (IpAddr, IpAddr) = match &other.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            if ip.extensions().auth.is_some() {
                // It looks behind IPsec's header in IPv4, and we do not.
                return;
            }
            let header = ip.header();
            (header.source().into(), header.destination().into())
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            let header = ip.header();
            (header.source().into(), header.destination().into())
        }
        _ => return,
    };
    assert_eq!(facts.source, source.into());
    let destination = Address::from(destination);
    assert_eq!(
        (facts.destination_high, facts.destination_low),
        (destination.high, destination.low)
    );
    let ports = (facts.source_port, facts.destination_port);
    // Of extension headers it takes fewer, and each in its place: then it finds nothing behind.
    match (&other.transport, &other.stop_err) {
        (Some(TransportSlice::Tcp(tcp)), _) => {
            assert_eq!(facts.transport, Transport::Tcp);
            // Byte 13 of the header.
            assert_eq!(facts.tcp_flags, tcp.slice()[13]);
            assert_eq!(ports, (tcp.source_port(), tcp.destination_port()));
        }
        (Some(TransportSlice::Udp(udp)), _) => {
            assert_eq!(facts.transport, Transport::Ports);
            assert_eq!(ports, (udp.source_port(), udp.destination_port()));
        }
        (Some(TransportSlice::Icmpv4(_) | TransportSlice::Icmpv6(_)), _) => {
            assert_eq!(facts.transport, Transport::Other);
        }
        (None, Some((error, Layer::TcpHeader))) => panic!("no TCP header: {error}"),
        // Other protocols are told by the number alone.
        _ => {}
    }
}
