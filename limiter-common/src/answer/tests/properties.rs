//! Properties of the answers to any frame.

extern crate std;

use std::vec::Vec;

use proptest::prelude::*;

use super::{
    examples::checked,
    scene::{answer_to, good_frames},
};
use crate::answer::{Answer, MORE_BYTES, SHORTEST_FRAME};

const ANSWERS: [Answer; 4] = [
    Answer::Truncate,
    Answer::Reset,
    Answer::Prohibited,
    Answer::SynCookie,
];

/// Removes the frame's tags, for a parser that takes few tags.
fn untagged(frame: &[u8]) -> Vec<u8> {
    let mut link = 12;
    while matches!(frame[link..link + 2], [0x81 | 0x91, 0] | [0x88, 0xa8]) {
        link += 4;
    }
    [&frame[..12], &frame[link..]].concat()
}

/// For any frame: its answers are short and valid, and themselves get nothing but an ICMP error, or a
/// SYN-ACK a reset.
fn check(frame: &[u8]) -> usize {
    let mut answers = 0;
    for kind in ANSWERS {
        let Some(answer) = answer_to(frame, kind) else {
            continue;
        };
        answers += 1;
        let on_wire = |frame: &[u8]| frame.len().max(SHORTEST_FRAME as usize);
        if kind == Answer::Truncate {
            assert!(answer.len() <= frame.len());
        } else {
            assert!(on_wire(&answer) <= on_wire(frame) + MORE_BYTES as usize);
        }
        checked(&untagged(&answer));
        for next in ANSWERS {
            let Some(second) = answer_to(&answer, next) else {
                continue;
            };
            assert_ne!(next, kind, "the same answer to an answer");
            assert!(
                next == Answer::Prohibited || (kind, next) == (Answer::SynCookie, Answer::Reset)
            );
            assert!(
                ANSWERS
                    .iter()
                    .all(|kind| answer_to(&second, *kind).is_none())
            );
        }
    }
    answers
}

#[test]
fn good_frames_get_answers() {
    let answers: usize = good_frames().iter().map(|frame| check(frame)).sum();
    assert!(answers > 20, "{answers}");
}

#[derive(Clone, Debug)]
struct Change {
    at: usize,
    value: u8,
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = (0usize..120, any::<u8>()).prop_map(|(at, value)| Change { at, value });
    prop::collection::vec(change, 0..4)
}

/// Repairs every checksum, as a malicious sender would.
fn mended(frame: &[u8]) -> Vec<u8> {
    use etherparse::{NetHeaders, PacketHeaders, TransportHeader};

    let Ok(packet) = PacketHeaders::from_ethernet_slice(frame) else {
        return frame.to_vec();
    };
    let (Some(link), Some(mut net), Some(mut transport)) =
        (packet.link, packet.net, packet.transport)
    else {
        return frame.to_vec();
    };
    if !packet.link_exts.is_empty() {
        return frame.to_vec();
    }
    let payload = packet.payload.slice();
    let updated = match &mut net {
        NetHeaders::Ipv4(ip, _) => {
            ip.header_checksum = ip.calc_header_checksum();
            transport.update_checksum_ipv4(ip, payload).is_ok()
        }
        NetHeaders::Ipv6(ip, _) => transport.update_checksum_ipv6(ip, payload).is_ok(),
        NetHeaders::Arp(_) => false,
    };
    if !updated {
        return frame.to_vec();
    }
    let mut mended = Vec::new();
    link.write(&mut mended).unwrap();
    match net {
        NetHeaders::Ipv4(ip, _) => ip.write_raw(&mut mended).unwrap(),
        NetHeaders::Ipv6(ip, _) => ip.write(&mut mended).unwrap(),
        NetHeaders::Arp(_) => {}
    }
    match transport {
        TransportHeader::Tcp(tcp) => tcp.write(&mut mended).unwrap(),
        TransportHeader::Udp(udp) => udp.write(&mut mended).unwrap(),
        TransportHeader::Icmpv4(icmp) => icmp.write(&mut mended).unwrap(),
        TransportHeader::Icmpv6(icmp) => icmp.write(&mut mended).unwrap(),
        TransportHeader::Igmp(_) => return frame.to_vec(),
    }
    mended.extend_from_slice(payload);
    mended
}

proptest! {
    #[test]
    fn of_random_bytes(frame in prop::collection::vec(any::<u8>(), 0..2300)) {
        check(&frame);
    }

    #[test]
    fn of_changed_frames(
        frame in prop::sample::select(good_frames()),
        changes in changes(),
        cut in prop::option::of(0usize..200),
    ) {
        let mut frame = frame;
        for Change { at, value } in changes {
            if let Some(byte) = frame.get_mut(at) {
                *byte = value;
            }
        }
        if let Some(cut) = cut {
            frame.truncate(cut);
        }
        check(&frame);
        check(&mended(&frame));
    }
}
