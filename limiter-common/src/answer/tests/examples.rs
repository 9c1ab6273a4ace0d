//! Whole answers.

extern crate std;

use std::vec::Vec;

use etherparse::{Icmpv4Slice, Icmpv6Slice, NetSlice, SlicedPacket, TransportSlice, UdpHeader};

use super::scene::{
    BOTH, CLIENT_MAC, Ip, QUERY, SERVER_MAC, TRUNCATED, answer_to, fin, ping, query, segment, syn,
    udp,
};
use crate::answer::Answer;

/// Splits a frame, and checks its checksums.
pub(super) fn checked(frame: &[u8]) -> SlicedPacket<'_> {
    let packet = SlicedPacket::from_ethernet(frame).unwrap();
    let transport = packet.transport.as_ref().unwrap();
    match packet.net.as_ref().unwrap() {
        NetSlice::Ipv4(ip) => {
            let header = ip.header().to_header();
            assert_eq!(header.header_checksum, header.calc_header_checksum());
            let (from, to) = (header.source, header.destination);
            match transport {
                TransportSlice::Udp(udp) => {
                    let header = udp.to_header();
                    let right = UdpHeader {
                        checksum: 0,
                        ..header.clone()
                    };
                    let right = right
                        .calc_checksum_ipv4_raw(from, to, udp.payload())
                        .unwrap();
                    assert!(header.checksum == 0 || header.checksum == right);
                }
                TransportSlice::Tcp(tcp) => {
                    let right = tcp.calc_checksum_ipv4(from, to).unwrap();
                    assert_eq!(tcp.checksum(), right);
                }
                TransportSlice::Icmpv4(icmp) => assert!(is_right_v4(icmp)),
                other => panic!("{other:?}"),
            }
        }
        NetSlice::Ipv6(ip) => {
            let (from, to) = (ip.header().source(), ip.header().destination());
            match transport {
                TransportSlice::Udp(udp) => {
                    let header = udp.to_header();
                    let right = header
                        .calc_checksum_ipv6_raw(from, to, udp.payload())
                        .unwrap();
                    assert_eq!(header.checksum, right);
                }
                TransportSlice::Tcp(tcp) => {
                    let right = tcp.calc_checksum_ipv6(from, to).unwrap();
                    assert_eq!(tcp.checksum(), right);
                }
                TransportSlice::Icmpv6(icmp) => assert!(is_right_v6(icmp, from, to)),
                other => panic!("{other:?}"),
            }
        }
        arp @ NetSlice::Arp(_) => panic!("{arp:?}"),
    }
    packet
}

fn is_right_v4(icmp: &Icmpv4Slice<'_>) -> bool {
    icmp.icmp_type().calc_checksum(icmp.payload()) == icmp.checksum()
}

fn is_right_v6(icmp: &Icmpv6Slice<'_>, from: [u8; 16], to: [u8; 16]) -> bool {
    icmp.is_checksum_valid(from, to)
}

fn payload<'f>(packet: &SlicedPacket<'f>) -> &'f [u8] {
    match packet.transport.as_ref().unwrap() {
        TransportSlice::Udp(udp) => udp.payload(),
        TransportSlice::Tcp(tcp) => tcp.payload(),
        TransportSlice::Icmpv4(icmp) => icmp.payload(),
        TransportSlice::Icmpv6(icmp) => icmp.payload(),
        igmp @ TransportSlice::Igmp(_) => panic!("{igmp:?}"),
    }
}

#[test]
fn a_query_is_told_to_come_over_tcp() {
    for family in BOTH {
        for tags in [0, 1, 4, 8] {
            let asked = udp(family, tags, 4321, &QUERY);
            let answer = answer_to(&asked, Answer::Truncate).unwrap();
            assert_eq!(answer.len(), asked.len() - QUERY.len() + TRUNCATED.len());
            assert_eq!(answer[..6], CLIENT_MAC);
            assert_eq!(answer[6..12], SERVER_MAC);
            let link = 12..14 + 4 * usize::from(tags);
            assert_eq!(answer[link.clone()], asked[link.clone()]);
            let untagged = [&answer[..12], &answer[link.end - 2..]].concat();
            let packet = checked(&untagged);
            let Some(TransportSlice::Udp(udp)) = &packet.transport else {
                panic!("{packet:?}");
            };
            assert_eq!((udp.source_port(), udp.destination_port()), (53, 4321));
            assert_eq!(payload(&packet), TRUNCATED);
        }
    }
}

#[test]
fn a_whole_answer_over_ipv4() {
    let answer = answer_to(&query(Ip::V4), Answer::Truncate).unwrap();
    let ip = [
        0x45, 0, 0, 57, 0, 0, 0x40, 0, 64, 17, 0x4e, 0x78, 198, 51, 100, 1, 192, 0, 2, 7,
    ];
    assert_eq!(answer[14..34], ip);
    assert_eq!(answer[34..40], [0, 53, 0x10, 0xe1, 0, 37]);
    assert_eq!(answer[42..], TRUNCATED);
}

#[test]
fn a_checksum_that_was_not_computed_stays_so() {
    let mut asked = query(Ip::V4);
    asked[40..42].fill(0);
    let answer = answer_to(&asked, Answer::Truncate).unwrap();
    assert_eq!(answer[40..42], [0, 0]);
    let mut asked = query(Ip::V6);
    asked[60..62].fill(0);
    assert_eq!(answer_to(&asked, Answer::Truncate), None);
}

#[test]
fn a_segment_is_reset_with_the_numbers_of_the_rfc() {
    for family in BOTH {
        // The frame; the answer's sequence number, and its acknowledged number if any.
        let cases: [(Vec<u8>, u32, Option<u32>); 5] = [
            (syn(family), 0, Some(0xffff_ffff)),
            (segment(family, b"GET"), 2000, None),
            (segment(family, &[]), 2000, None),
            (fin(family, &[]), 0, Some(1001)),
            (fin(family, b"12345"), 0, Some(1006)),
        ];
        for (asked, sequence, acknowledged) in cases {
            checked(&asked);
            let answer = answer_to(&asked, Answer::Reset).unwrap();
            let packet = checked(&answer);
            let Some(TransportSlice::Tcp(tcp)) = &packet.transport else {
                panic!("{packet:?}");
            };
            assert!(tcp.rst() && !tcp.syn() && !tcp.fin() && !tcp.psh());
            assert_eq!((tcp.source_port(), tcp.destination_port()), (443, 4321));
            assert_eq!(tcp.sequence_number(), sequence);
            assert_eq!(tcp.ack().then(|| tcp.acknowledgment_number()), acknowledged);
            assert_eq!(tcp.slice().len(), 20);
            assert!(answer.len() <= asked.len());
        }
    }
}

#[test]
fn an_icmp_error_quotes_eight_bytes_behind_the_header() {
    for asked in [
        query(Ip::V4),
        syn(Ip::V4),
        segment(Ip::V4, b""),
        ping(Ip::V4, b""),
    ] {
        let answer = answer_to(&asked, Answer::Prohibited).unwrap();
        let packet = checked(&answer);
        assert_eq!(answer.len(), 14 + 20 + 8 + 28);
        assert_eq!(answer[34..36], [3, 13]);
        assert_eq!(answer[38..42], [0; 4]);
        assert_eq!(payload(&packet), &asked[14..42]);
    }
}

#[test]
fn an_icmpv6_error_quotes_what_sixteen_more_bytes_have_room_for() {
    let long = udp(Ip::V6, 0, 4321, &[7; 1500]);
    for (asked, quoted) in [
        (syn(Ip::V6), 60),
        (query(Ip::V6), 40 + 8 + 8),
        (ping(Ip::V6, &[9; 56]), 40 + 8 + 32),
        (long, 1232),
    ] {
        let asked_length = asked.len();
        let answer = answer_to(&asked, Answer::Prohibited).unwrap();
        let packet = checked(&answer);
        assert_eq!(answer[54..56], [1, 1]);
        let quote = quoted
            .min(asked_length - 14)
            .min(asked_length + 16 - 14 - 48);
        assert_eq!(payload(&packet), &asked[14..14 + quote]);
        assert!(answer.len() <= asked_length + 16);
        assert!(answer.len() <= 14 + 1280);
    }
    // Receivers need 48 bytes.
    assert_eq!(answer_to(&segment(Ip::V6, &[]), Answer::Prohibited), None);
    assert_eq!(answer_to(&ping(Ip::V6, &[]), Answer::Prohibited), None);
}
