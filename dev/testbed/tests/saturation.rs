//! A source that sends as fast as it can. Needs root; fails without.
//!
//! Separate from the other tests: without an XDP program, all veth pairs of a processor share a
//! receive queue, and when it overflows each of them loses packets.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use testbed::{Load, Pair, RawSink, SERVER_INTERFACE, UdpSink, UdpSource};

const PORT: u16 = 9000;

#[test]
fn what_a_saturating_source_counts_reached_the_other_end() {
    let pair = Pair::new(
        &["10.77.0.2/24".parse().unwrap()],
        &["10.77.0.1/24".parse().unwrap()],
    )
    .unwrap();
    let source = IpAddr::from([10, 77, 0, 2]);
    let server = SocketAddr::from(([10, 77, 0, 1], PORT));
    let wire = RawSink::new(&pair.server, SERVER_INTERFACE).unwrap();
    let _sink = UdpSink::new(&pair.server, PORT).unwrap();
    let udp = UdpSource::new(&pair.client, source, server).unwrap();
    let load = Load::saturating(Duration::from_secs(10)).at_most(50_000);
    let sent = udp.send(load, 10).unwrap();
    let tally = wire.finish().unwrap();
    assert_eq!(sent.packets, 50_000);
    assert_eq!(tally.of(source).packets + tally.lost, 50_000, "{tally:?}");
}
