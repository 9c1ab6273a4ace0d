use limiter_common::packet::{FLAG_ACK, FLAG_SYN};

use super::*;

const CLIENT: [u8; 4] = [192, 0, 2, 7];
const SERVER: [u8; 4] = [192, 0, 2, 1];

/// A TCP segment from port 40 000 of the client to port 80, or back.
fn segment(from_client: bool, flags: u8, sequence: u32, acknowledged: u32) -> Vec<u8> {
    let (client, server) = ((CLIENT, 40_000_u16), (SERVER, 80_u16));
    let (source, destination) = if from_client {
        (client, server)
    } else {
        (server, client)
    };
    let mut frame = vec![0; 12];
    frame.extend([0x08, 0x00]);
    // IPv4 of 40 bytes, with TCP and without options.
    frame.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0]);
    frame.extend(source.0);
    frame.extend(destination.0);
    frame.extend(source.1.to_be_bytes());
    frame.extend(destination.1.to_be_bytes());
    frame.extend(sequence.to_be_bytes());
    frame.extend(acknowledged.to_be_bytes());
    frame.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    frame
}

/// Feeds segments, each with whether it passes; returns the counts of handshakes.
fn completed(segments: &[(bool, Vec<u8>)]) -> HandshakeCounts {
    let mut handshakes = Handshakes::default();
    for (passed, data) in segments {
        let frame = CapturedFrame {
            data,
            length: data.len(),
        };
        let mut facts = Facts::NONE;
        packet::parse(&frame, &mut facts).expect("it is well-formed");
        if let Some(client) = handshakes.follow(&frame, &facts, *passed) {
            assert_eq!(client, Address::v4(CLIENT));
        }
    }
    handshakes.counts()
}

fn counts(begun: u64, completed: u64, assumed: u64) -> HandshakeCounts {
    HandshakeCounts {
        begun,
        completed,
        assumed,
    }
}

const BOTH: u8 = FLAG_SYN | FLAG_ACK;

#[test]
fn a_handshake_acknowledges_what_the_server_chose() {
    let syn = || (true, segment(true, FLAG_SYN, u32::MAX, 0));
    let reply = || (true, segment(false, BOTH, 900, 0));
    let ack = |sequence, acknowledged| (true, segment(true, FLAG_ACK, sequence, acknowledged));
    assert_eq!(completed(&[syn(), reply(), ack(0, 901)]), counts(1, 1, 0));
    // It counts once per connection, however much the client sends.
    let more = [syn(), reply(), ack(0, 901), ack(0, 901), ack(5, 950)];
    assert_eq!(completed(&more), counts(1, 1, 0));
    // A forger does not know the server's number, and another server's SYN-ACK does not help.
    assert_eq!(completed(&[syn(), reply(), ack(0, 902)]), counts(1, 0, 0));
    assert_eq!(completed(&[syn(), reply(), ack(1, 901)]), counts(1, 0, 0));
    assert_eq!(completed(&[reply(), ack(0, 901)]), counts(0, 0, 0));
    let to_another = (true, segment(false, BOTH, 900, 77));
    assert_eq!(
        completed(&[syn(), to_another, ack(0, 901)]),
        counts(1, 0, 0)
    );
}

#[test]
fn without_replies_the_clients_packets_must_do() {
    let syn = || (true, segment(true, FLAG_SYN, 5, 0));
    let ack = || (true, segment(true, FLAG_ACK, 6, 1234));
    assert_eq!(completed(&[syn(), ack()]), counts(1, 1, 1));
    let reset = (true, segment(true, FLAG_RST, 6, 0));
    assert_eq!(completed(&[syn(), reset, ack()]), counts(1, 0, 0));
    assert_eq!(completed(&[ack()]), counts(0, 0, 0));
}

#[test]
fn what_is_dropped_completes_nothing() {
    let syn = |passed| (passed, segment(true, FLAG_SYN, 5, 0));
    let ack = |passed| (passed, segment(true, FLAG_ACK, 6, 1234));
    assert_eq!(completed(&[syn(false), ack(true)]), counts(0, 0, 0));
    assert_eq!(completed(&[syn(true), ack(false)]), counts(1, 0, 0));
    // A retransmitted SYN begins no further handshake.
    let again = [syn(true), syn(true), ack(false), ack(true)];
    assert_eq!(completed(&again), counts(1, 1, 1));
}

#[test]
fn the_oldest_half_open_connections_are_forgotten() {
    let mut handshakes = Handshakes::default();
    let connection = |number: u64| Connection {
        client: (number, 0, 1),
        server: (0, 0, 80),
    };
    let many = HALF_OPEN as u64 + 5;
    for number in 0..many {
        handshakes.open(connection(number), 7);
    }
    assert_eq!(handshakes.half_open.len(), HALF_OPEN);
    let numbers = TcpNumbers {
        sequence: 8,
        acknowledged: 0,
    };
    assert!(!handshakes.completes(connection(4), numbers));
    assert!(handshakes.completes(connection(5), numbers));
    assert!(handshakes.completes(connection(many - 1), numbers));
}
