//! New TCP connections, one SYN each. Needs root; fails without.
//!
//! Separate from the tests that send much: without an XDP program, all veth pairs of a processor
//! share a receive queue, and TCP does not repeat a SYN within the time of an attempt.

use std::{
    net::{IpAddr, SocketAddr},
    num::NonZeroU32,
    thread,
    time::Duration,
};

use testbed::{CLIENT_INTERFACE, Connector, Listener, Load, Pair, RawSink, SERVER_INTERFACE};

const PORT: u16 = 9000;

fn pair() -> Pair {
    Pair::new(
        &["10.77.0.2/24", "fd77:1:1::2/48"].map(|net| net.parse().expect("a network")),
        &["10.77.0.1/24", "fd77:0:0::1/64"].map(|net| net.parse().expect("a network")),
    )
    .expect("a pair, as root")
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn server_of(source: IpAddr) -> SocketAddr {
    let address = if source.is_ipv4() {
        "10.77.0.1"
    } else {
        "fd77::1"
    };
    SocketAddr::from((ip(address), PORT))
}

fn rate(per_second: u32) -> NonZeroU32 {
    NonZeroU32::new(per_second).expect("not zero")
}

#[test]
fn every_connection_is_one_syn_and_is_counted() {
    let pair = pair();
    let listener = Listener::new(&pair.server, PORT).unwrap();
    for source in ["10.77.0.2", "fd77:1:1::2"].map(ip) {
        let connector = Connector::new(&pair.client, source, server_of(source));
        let attempts = connector
            .connect(Load::steady(rate(200), Duration::from_millis(500)))
            .unwrap();
        // On a busy machine the kernel is late with a few.
        assert_eq!(attempts.sent.packets, 100);
        assert!((95..=100).contains(&attempts.established), "{attempts:?}");
    }
    let tally = listener.finish().unwrap();
    for source in ["10.77.0.2", "fd77:1:1::2"] {
        let accepted = tally.of(ip(source)).packets;
        assert!((95..=100).contains(&accepted), "{tally:?}");
    }
}

#[test]
fn an_attempt_nobody_answers_is_one_syn() {
    let pair = pair();
    let wire = RawSink::new(&pair.server, SERVER_INTERFACE).unwrap();
    // No host has this address, so none refuses either.
    let nobody = ip("10.77.0.99");
    pair.client
        .ip(&[
            "neighbour",
            "replace",
            "10.77.0.99",
            "lladdr",
            "02:00:00:00:00:99",
            "dev",
            CLIENT_INTERFACE,
            "nud",
            "permanent",
        ])
        .unwrap();
    let connector = Connector::new(
        &pair.client,
        ip("10.77.0.2"),
        SocketAddr::from((nobody, PORT)),
    );
    let attempts = connector
        .connect(Load::steady(rate(100), Duration::from_millis(200)))
        .unwrap();
    assert_eq!((attempts.sent.packets, attempts.established), (20, 0));
    thread::sleep(Duration::from_millis(1200));
    assert_eq!(wire.finish().unwrap().of(ip("10.77.0.2")).packets, 20);
}
