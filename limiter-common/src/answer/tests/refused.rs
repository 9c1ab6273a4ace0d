//! Packets without answers.

extern crate std;

use std::vec::Vec;

use etherparse::IpNumber;

use super::scene::{BOTH, Ip, QUERY, answer_to, ping, query, reset, segment, syn, udp};
use crate::answer::Answer;

const ANSWERS: [Answer; 3] = [Answer::Truncate, Answer::Reset, Answer::Prohibited];

/// The offset of the IPv4 header.
const IPV4: usize = 14;

#[track_caller]
fn refuse(frame: &[u8]) {
    for answer in ANSWERS {
        assert_eq!(answer_to(frame, answer), None, "{answer:?}");
    }
}

/// Recomputes the checksum of an IPv4 header.
fn with_ipv4_checksum(mut frame: Vec<u8>) -> Vec<u8> {
    frame[IPV4 + 10..IPV4 + 12].fill(0);
    let words = frame[IPV4..IPV4 + 20].chunks(2);
    let sum: u32 = words
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !u16::try_from((folded & 0xffff) + (folded >> 16)).unwrap();
    frame[IPV4 + 10..IPV4 + 12].copy_from_slice(&checksum.to_be_bytes());
    frame
}

/// Changes some bytes of the IPv4 header of a query without a UDP checksum.
fn changed(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut frame = query(Ip::V4);
    frame[40..42].fill(0);
    frame[IPV4 + at..IPV4 + at + bytes.len()].copy_from_slice(bytes);
    with_ipv4_checksum(frame)
}

/// Changes bytes of the DNS message of a query without a UDP checksum.
fn asking(at: usize, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut message = QUERY.to_vec();
    message[at..at + bytes.len()].copy_from_slice(bytes);
    answer_to(&udp(Ip::V4, 0, 4321, &message), Answer::Truncate)
}

#[test]
fn what_is_unchanged_gets_one() {
    assert!(answer_to(&changed(0, &[]), Answer::Truncate).is_some());
    assert!(asking(0, &[]).is_some());
}

#[test]
fn wrong_checksums() {
    for family in BOTH {
        for frame in [query(family), syn(family), ping(family, &[9; 56])] {
            for at in 14..frame.len() {
                let mut damaged = frame.clone();
                damaged[at] ^= 0x08;
                // IPv6's checksums cover neither its traffic class, its flow label nor its hop limit.
                if family == Ip::V6 && matches!(at, 14..18 | 21) {
                    continue;
                }
                refuse(&damaged);
            }
        }
    }
}

#[test]
fn fragments_options_and_cut_packets() {
    for flags in [[0x20, 0], [0, 1], [0x20, 7]] {
        refuse(&changed(6, &flags));
    }
    refuse(&changed(0, &[0x46]));
    refuse(&changed(0, &[0x44]));
    refuse(&changed(0, &[0x55]));
    let query = query(Ip::V4);
    refuse(&query[..query.len() - 1]);
    refuse(&query[..20]);
    let mut extended = super::scene::query(Ip::V6);
    for header in [
        IpNumber::IPV6_FRAGMENTATION_HEADER,
        IpNumber::IPV6_HEADER_HOP_BY_HOP,
    ] {
        extended[20] = header.0;
        refuse(&extended);
    }
}

#[test]
fn padding_is_not_answered_with() {
    for family in BOTH {
        let asked = query(family);
        let padded = [&asked[..], &[0; 500]].concat();
        for answer in ANSWERS {
            assert_eq!(answer_to(&padded, answer), answer_to(&asked, answer));
        }
    }
}

#[test]
fn groups_loopback_and_what_nobody_has() {
    for (at, bytes) in [
        (12, [0, 0, 0, 0]),
        (12, [0, 1, 2, 3]),
        (12, [127, 0, 0, 1]),
        (12, [224, 0, 0, 1]),
        (12, [240, 0, 0, 1]),
        (12, [255, 255, 255, 255]),
        (12, [169, 254, 1, 1]),
        (12, [198, 51, 100, 1]),
        (16, [127, 9, 9, 9]),
        (16, [224, 0, 0, 251]),
        (16, [255, 255, 255, 255]),
        (16, [0, 0, 0, 0]),
        (16, [169, 254, 1, 1]),
    ] {
        refuse(&changed(at, &bytes));
    }
    let link = changed(12, &[169, 254, 1, 1, 169, 254, 1, 2]);
    assert!(answer_to(&link, Answer::Truncate).is_some());
    for at in [0, 6] {
        let mut frame = query(Ip::V4);
        frame[at] |= 1;
        refuse(&frame);
    }
}

#[test]
fn addresses_of_ipv6_that_nobody_has() {
    let addresses = |source: &str, destination: &str| {
        let octets = |text: &str| text.parse::<core::net::Ipv6Addr>().unwrap().octets();
        let packet = etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv6(octets(source), octets(destination), 9)
            .udp(4321, 53);
        let mut frame = Vec::new();
        packet.write(&mut frame, &QUERY).unwrap();
        frame
    };
    let (one, other) = ("2001:db8::1", "2001:db8::2");
    assert!(answer_to(&addresses(one, other), Answer::Truncate).is_some());
    assert!(answer_to(&addresses("fe80::1", "fe80::2"), Answer::Truncate).is_some());
    assert!(answer_to(&addresses("64:ff9b::1.2.3.4", other), Answer::Truncate).is_some());
    for (source, destination) in [
        (one, one),
        ("::", other),
        ("::1", other),
        ("::ffff:192.0.2.1", other),
        ("ff02::1", other),
        ("fe80::1", other),
        (one, "ff02::fb"),
        (one, "::1"),
        (one, "fe80::1"),
    ] {
        refuse(&addresses(source, destination));
    }
}

#[test]
fn messages_that_are_no_single_query() {
    // Responses, other operations, no question or two.
    assert_eq!(asking(2, &[0x81]), None);
    assert_eq!(asking(2, &[0x08]), None);
    assert_eq!(asking(2, &[0x29]), None);
    assert_eq!(asking(4, &[0, 0]), None);
    assert_eq!(asking(4, &[0, 2]), None);
    assert_eq!(asking(4, &[1, 1]), None);
    // Compressed, reserved and endless names.
    assert_eq!(asking(12, &[0xc0, 12]), None);
    assert_eq!(asking(12, &[64]), None);
    assert_eq!(asking(12, &[63]), None);
    for length in [0, 1, 11, 12, 13, 20, 27, 28] {
        let frame = udp(Ip::V4, 0, 4321, &QUERY[..length]);
        assert_eq!(answer_to(&frame, Answer::Truncate), None, "{length}");
    }
    // The question alone fills the message.
    assert!(answer_to(&udp(Ip::V4, 0, 4321, &QUERY[..29]), Answer::Truncate).is_some());
}

#[test]
fn names_beyond_255_bytes() {
    let query = |name: &[u8]| {
        let message = [&QUERY[..12], name, &[0, 1, 0, 1]].concat();
        answer_to(&udp(Ip::V4, 0, 4321, &message), Answer::Truncate)
    };
    let label = |length: u8| [&[length][..], &[b'a'; 63][..length.into()]].concat();
    let longest = [label(63), label(63), label(63), label(61), label(0)].concat();
    assert_eq!(longest.len(), 255);
    assert_eq!(query(&longest).unwrap().len(), 14 + 20 + 8 + 12 + 255 + 4);
    let longer = [label(63), label(63), label(63), label(62), label(0)].concat();
    assert_eq!(query(&longer), None);
    let most_labels = [&[1, b'a'].repeat(127)[..], &[0]].concat();
    assert_eq!(most_labels.len(), 255);
    assert!(query(&most_labels).is_some());
    let more_labels = [&[1, b'a'].repeat(128)[..], &[0]].concat();
    assert_eq!(query(&more_labels), None);
    assert!(query(&[0]).is_some());
}

#[test]
fn resets_icmp_errors_and_what_is_of_another_protocol() {
    for family in BOTH {
        refuse(&reset(family));
        assert_eq!(answer_to(&query(family), Answer::Reset), None);
        assert_eq!(answer_to(&ping(family, &[9; 56]), Answer::Reset), None);
        assert_eq!(answer_to(&syn(family), Answer::Truncate), None);
        assert_eq!(answer_to(&segment(family, &QUERY), Answer::Truncate), None);
        refuse(&answer_to(&syn(family), Answer::Prohibited).unwrap());
        // A response to the host's own query, and a packet at port 0.
        refuse(&udp(family, 0, 53, &[0x80; 100]));
        refuse(&udp(family, 0, 0, &QUERY));
    }
    refuse(&changed(9, &[132]));
}
