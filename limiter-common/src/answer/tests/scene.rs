//! Frames that may get an answer, and their answers.

extern crate std;

use std::{vec, vec::Vec};

use etherparse::{
    EtherType, Ethernet2Header, IpHeaders, PacketBuilder, PacketBuilderStep, SingleVlanHeader,
};

use crate::{
    answer::{Answer, AnswerOutcome, Exchange, NativeResponder, Responder, respond},
    packet::BytesFrame,
};

pub(super) const CLIENT_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
pub(super) const SERVER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// A query for the address of `example.com`, with an additional record.
pub(super) const QUERY: [u8; 40] =
    *b"\x12\x34\x01\x10\0\x01\0\0\0\0\0\x01\x07example\x03com\0\0\x01\0\x01\
                                     \0\0\x29\x04\xd0\0\0\0\0\0\0";

/// The header and the question of its answer.
pub(super) const TRUNCATED: [u8; 29] =
    *b"\x12\x34\x83\x10\0\x01\0\0\0\0\0\0\x07example\x03com\0\0\x01\0\x01";

/// The frames' family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ip {
    V4,
    V6,
}

pub(super) const BOTH: [Ip; 2] = [Ip::V4, Ip::V6];

/// Returns the answer to a frame, as a frame, if there is one.
pub(super) fn answer_to(frame: &[u8], answer: Answer) -> Option<Vec<u8>> {
    outcome_of(&NativeResponder::default(), frame, answer).1
}

/// Returns the fate of a frame, and its answer.
pub(super) fn outcome_of(
    responder: &impl Responder,
    frame: &[u8],
    answer: Answer,
) -> (AnswerOutcome, Option<Vec<u8>>) {
    let Some(mut exchange) = exchange_of(frame) else {
        return (AnswerOutcome::Nothing, None);
    };
    let outcome = respond(responder, &mut exchange, answer);
    let AnswerOutcome::Answer(length) = outcome else {
        assert!(exchange.answer().is_empty(), "{outcome:?}");
        return (outcome, None);
    };
    assert_eq!(exchange.answer().len(), length as usize);
    let tags = &frame[12..exchange.link_length() as usize];
    let answer = [exchange.ethernet(), tags, exchange.answer()].concat();
    (outcome, Some(answer))
}

/// Returns the exchange with a frame's packet, if it has room.
pub(super) fn exchange_of(frame: &[u8]) -> Option<Exchange> {
    // Bytes of an earlier packet in the memory must not matter.
    let mut exchange = Exchange::EMPTY;
    exchange.bytes_mut().fill(0xa5);
    exchange.read(&BytesFrame(frame)).then_some(exchange)
}

fn ip(family: Ip) -> PacketBuilderStep<IpHeaders> {
    const TTL: u8 = 57;
    match family {
        Ip::V4 => PacketBuilder::ipv4([192, 0, 2, 7], [198, 51, 100, 1], TTL),
        Ip::V6 => PacketBuilder::ipv6(
            [0x20, 1, 0xd, 0xb8, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7],
            [0x20, 1, 0xd, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            TTL,
        ),
    }
}

/// Returns the Ethernet header and `tags` tags.
pub(super) fn link(family: Ip, tags: u8) -> Vec<u8> {
    let inner = match family {
        Ip::V4 => EtherType::IPV4,
        Ip::V6 => EtherType::IPV6,
    };
    let tag = EtherType::VLAN_TAGGED_FRAME;
    let mut bytes = Vec::new();
    let header = Ethernet2Header {
        source: CLIENT_MAC,
        destination: SERVER_MAC,
        ether_type: if tags == 0 { inner } else { tag },
    };
    header.write(&mut bytes).unwrap();
    for number in 1..=tags {
        let header = SingleVlanHeader {
            vlan_id: u16::from(number).try_into().unwrap(),
            ether_type: if number == tags { inner } else { tag },
            ..SingleVlanHeader::default()
        };
        header.write(&mut bytes).unwrap();
    }
    bytes
}

/// Returns a frame with a UDP datagram.
pub(super) fn udp(family: Ip, tags: u8, source: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = link(family, tags);
    let packet = ip(family).udp(source, 53);
    packet.write(&mut frame, payload).unwrap();
    frame
}

/// Returns a frame with the query.
pub(super) fn query(family: Ip) -> Vec<u8> {
    udp(family, 0, 4321, &QUERY)
}

/// Returns a SYN with Linux's options.
pub(super) fn syn(family: Ip) -> Vec<u8> {
    use etherparse::TcpOptionElement as Element;

    let mut frame = link(family, 0);
    let packet = ip(family).tcp(4321, 443, 0xffff_fffe, 64_240).syn();
    let packet = packet.options(&[
        Element::MaximumSegmentSize(1460),
        Element::SelectiveAcknowledgementPermitted,
        Element::Timestamp(77, 0),
        Element::Noop,
        Element::WindowScale(7),
    ]);
    packet.unwrap().write(&mut frame, &[]).unwrap();
    frame
}

/// Returns a SYN with other options, given as bytes.
pub(super) fn syn_with(family: Ip, options: &[u8]) -> Vec<u8> {
    let mut frame = link(family, 0);
    let packet = ip(family).tcp(4321, 443, 0xffff_fffe, 64_240).syn();
    let packet = packet.options_raw(options).unwrap();
    packet.write(&mut frame, &[]).unwrap();
    frame
}

/// Returns a frame without data that acknowledges a SYN-ACK before that number.
pub(super) fn acknowledgement(family: Ip, number: u32) -> Vec<u8> {
    let mut frame = link(family, 0);
    let packet = ip(family).tcp(4321, 443, 0xffff_ffff, 64_240).ack(number);
    packet.write(&mut frame, &[]).unwrap();
    frame
}

/// Returns a frame with data of a connection.
pub(super) fn segment(family: Ip, payload: &[u8]) -> Vec<u8> {
    let mut frame = link(family, 0);
    let packet = ip(family).tcp(4321, 443, 1000, 64_240).ack(2000).psh();
    packet.write(&mut frame, payload).unwrap();
    frame
}

/// Returns a frame with the end of a connection, without an acknowledgement.
pub(super) fn fin(family: Ip, payload: &[u8]) -> Vec<u8> {
    let mut frame = link(family, 0);
    let packet = ip(family).tcp(4321, 443, 1000, 64_240).fin();
    packet.write(&mut frame, payload).unwrap();
    frame
}

/// Returns a frame with a reset.
pub(super) fn reset(family: Ip) -> Vec<u8> {
    let mut frame = link(family, 0);
    let packet = ip(family).tcp(4321, 443, 1000, 0).rst();
    packet.write(&mut frame, &[]).unwrap();
    frame
}

/// Returns a frame with a ping.
pub(super) fn ping(family: Ip, payload: &[u8]) -> Vec<u8> {
    let mut frame = link(family, 0);
    match family {
        Ip::V4 => ip(family)
            .icmpv4_echo_request(1, 2)
            .write(&mut frame, payload),
        Ip::V6 => ip(family)
            .icmpv6_echo_request(1, 2)
            .write(&mut frame, payload),
    }
    .unwrap();
    frame
}

/// Returns frames of every kind that gets an answer.
pub(super) fn good_frames() -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for family in BOTH {
        frames.extend([
            query(family),
            udp(family, 2, 4321, &QUERY),
            udp(family, 0, 4321, &[0; 700]),
            udp(family, 0, 4321, &[]),
            syn(family),
            segment(family, b"GET"),
            segment(family, &[1; 1001]),
            fin(family, &[]),
            reset(family),
            ping(family, &[]),
            ping(family, &[9; 56]),
        ]);
    }
    frames.push(vec![0; 60]);
    frames
}
