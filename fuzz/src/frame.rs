//! Any bytes as a frame: the facts that are found are those that are there.

use std::net::IpAddr;

<<<<<<< HEAD
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
=======
use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice, err::Layer};
>>>>>>> fuzz
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
<<<<<<< HEAD
    let (source, destination) = match &other.net {
        Some(NetSlice::Ipv4(ip)) => (
            IpAddr::from(ip.header().source()),
            IpAddr::from(ip.header().destination()),
        ),
        Some(NetSlice::Ipv6(ip)) => (
            IpAddr::from(ip.header().source()),
            IpAddr::from(ip.header().destination()),
        ),
        _ => return,
    };
    assert_eq!(facts.source, source.into());
    let destination = Address::from(destination);
    assert_eq!(
        (facts.destination_high, facts.destination_low),
        (destination.high, destination.low)
    );
    match &other.transport {
        Some(TransportSlice::Tcp(tcp)) => {
            assert_eq!(facts.transport, Transport::Tcp);
            // Byte 13 of the header.
            assert_eq!(facts.tcp_flags, tcp.slice()[13]);
            let ports = (tcp.source_port(), tcp.destination_port());
            assert_eq!((facts.source_port, facts.destination_port), ports);
        }
        Some(TransportSlice::Udp(udp)) => {
            assert_eq!(facts.transport, Transport::Ports);
            let ports = (udp.source_port(), udp.destination_port());
            assert_eq!((facts.source_port, facts.destination_port), ports);
        }
        Some(TransportSlice::Icmpv4(_) | TransportSlice::Icmpv6(_)) => {
            assert_eq!(facts.transport, Transport::Other);
        }
        // Other protocols are told by the number alone.
        _ => {}
=======
    let source = match &other.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            if ip.extensions().auth.is_some() {
                // It looks behind IPsec's header in IPv4, and we do not.
                return;
            }
            Address::v4(ip.header().source())
        }
        Some(LaxNetSlice::Ipv6(ip)) => IpAddr::from(ip.header().source()).into(),
        _ => return,
    };
    assert_eq!(facts.source, source);
    // Of extension headers it takes fewer, and each in its place: then it finds nothing behind.
    match (&other.transport, &other.stop_err) {
        (Some(TransportSlice::Tcp(tcp)), _) => {
            assert_eq!(facts.opens_connection, tcp.syn() && !tcp.ack());
        }
        (Some(_), _) => assert!(!facts.opens_connection),
        (None, Some((error, Layer::TcpHeader))) => panic!("no TCP header: {error}"),
        (None, _) => {}
>>>>>>> fuzz
    }
}
