//! SYN cookies: the packets that ask for one, the answer, and the packets that bring one back.

extern crate std;

use std::{vec, vec::Vec};

use etherparse::{NetSlice, TcpOptionElement as Element, TransportSlice};

use super::{
    examples::checked,
    scene::{
        BOTH, CLIENT_MAC, Ip, SERVER_MAC, acknowledgement, answer_to, exchange_of, fin, outcome_of,
        query, reset, segment, syn, syn_with,
    },
};
use crate::answer::{
    Answer, AnswerOutcome, AssumedSocket, Cookie, Exchange, InlineLoops, ListenerReply,
    NativeResponder, Part, Responder, ServerOptions, WriteOutcome, parts, write, write_syn_ack,
};

/// A network stack that gives the test's reply.
struct Stack(ListenerReply);

impl Responder for Stack {
    fn write(&self, exchange: &mut Exchange, answer: Answer) -> WriteOutcome {
        write(exchange, answer, &InlineLoops)
    }

    fn query_listener(&self, _: &Exchange) -> ListenerReply {
        self.0
    }

    fn write_syn_ack(&self, exchange: &mut Exchange, cookie: Cookie) -> u32 {
        write_syn_ack(exchange, cookie, CLOCK_MS, &InlineLoops)
    }
}

const COOKIE: Cookie = Cookie {
    number: 0x89ab_cdef,
    mss: 1300,
    kept: ServerOptions::NOTHING,
};

/// Its low six bits are 21.
const CLOCK_MS: u32 = 0x1234_5655;

#[test]
fn a_syn_is_answered_with_the_cookie() {
    for family in BOTH {
        let asked = syn(family);
        let (outcome, answer) = outcome_of(
            &Stack(ListenerReply::Cookie(COOKIE)),
            &asked,
            Answer::SynCookie,
        );
        let answer = answer.unwrap();
        assert_eq!(
            outcome,
            AnswerOutcome::Answer(u32::try_from(answer.len() - 14).unwrap())
        );
        assert_eq!(answer[..6], CLIENT_MAC);
        assert_eq!(answer[6..12], SERVER_MAC);
        let packet = checked(&answer);
        match packet.net.as_ref().unwrap() {
            NetSlice::Ipv4(ip) => assert_eq!(ip.header().destination(), [192, 0, 2, 7]),
            NetSlice::Ipv6(ip) => assert_eq!(ip.header().destination()[15], 7),
            NetSlice::Arp(_) => panic!("{packet:?}"),
        }
        let Some(TransportSlice::Tcp(tcp)) = &packet.transport else {
            panic!("{packet:?}");
        };
        assert!(tcp.syn() && tcp.ack() && !tcp.rst() && !tcp.fin() && !tcp.psh());
        assert_eq!((tcp.source_port(), tcp.destination_port()), (443, 4321));
        assert_eq!(tcp.sequence_number(), COOKIE.number);
        assert_eq!(tcp.acknowledgment_number(), 0xffff_ffff);
        let options: Vec<_> = tcp.options_iterator().map(Result::unwrap).collect();
        assert_eq!(options, [Element::MaximumSegmentSize(1300)]);
        assert!(tcp.payload().is_empty());
    }
}

/// Returns the options of the answer to a SYN with these options, in the order in which they are sent.
fn options(family: Ip, offered: &[u8], kept: ServerOptions) -> Vec<Element> {
    let stack = Stack(ListenerReply::Cookie(Cookie { kept, ..COOKIE }));
    let asked = syn_with(family, offered);
    let answer = outcome_of(&stack, &asked, Answer::SynCookie).1.unwrap();
    // At most 8 bytes longer than the SYN.
    assert!(answer.len() <= asked.len() + 8, "{answer:02x?}");
    let packet = checked(&answer);
    let Some(TransportSlice::Tcp(tcp)) = &packet.transport else {
        panic!("{packet:?}");
    };
    tcp.options_iterator()
        .map(Result::unwrap)
        .filter(|option| *option != Element::Noop)
        .collect()
}

const MSS: [u8; 4] = [2, 4, 5, 0xb4];
const SACK: [u8; 2] = [4, 2];
const TIMESTAMPS: [u8; 10] = [8, 10, 0, 0, 0, 77, 0, 0, 0, 0];
const SCALE: [u8; 3] = [3, 3, 9];

/// Options both offered and kept are in the answer; the low bits of its timestamp hold the client's
/// options.
#[test]
fn options_are_offered_if_they_can_be_kept() {
    let everything = ServerOptions::new(true, Some(10));
    let all = [&MSS[..], &SACK, &TIMESTAMPS, &[1], &SCALE].concat();
    let other_order = [&MSS[..], &[1], &SCALE, &[1, 1], &TIMESTAMPS, &SACK, &[0, 0]].concat();
    let mss = Element::MaximumSegmentSize(1300);
    let sack = Element::SelectiveAcknowledgementPermitted;
    // The clock's low bits are 21: larger low bits belong to an earlier time.
    let stamp = |low: u32| {
        let step = if low > 21 { 64 } else { 0 };
        Element::Timestamp((CLOCK_MS & !63 | low) - step, 77)
    };
    let scale = Element::WindowScale(10);
    for family in BOTH {
        for offered in [&all, &other_order] {
            assert_eq!(
                options(family, offered, everything),
                [mss.clone(), sack.clone(), stamp(16 + 9), scale.clone()]
            );
        }
        for (offered, kept, wanted) in [
            (all.clone(), ServerOptions::NOTHING, vec![mss.clone()]),
            (
                all.clone(),
                ServerOptions::new(false, Some(10)),
                vec![mss.clone(), stamp(9), scale.clone()],
            ),
            (
                all.clone(),
                ServerOptions::new(true, None),
                vec![mss.clone(), sack.clone(), stamp(16 + 15)],
            ),
            // Without timestamps nothing can be kept.
            (
                [&MSS[..], &SACK, &SCALE].concat(),
                everything,
                vec![mss.clone()],
            ),
            (Vec::new(), everything, vec![mss.clone()]),
            (
                TIMESTAMPS.to_vec(),
                everything,
                vec![mss.clone(), stamp(15)],
            ),
            (
                [&TIMESTAMPS[..], &SACK].concat(),
                everything,
                vec![mss.clone(), sack.clone(), stamp(16 + 15)],
            ),
            (
                [&TIMESTAMPS[..], &[3, 3, 200]].concat(),
                everything,
                vec![mss.clone(), stamp(14), scale.clone()],
            ),
        ] {
            assert_eq!(options(family, &offered, kept), wanted, "{offered:?}");
        }
    }
}

/// Options behind a broken one are not offered.
#[test]
fn broken_options_are_not_read() {
    let everything = ServerOptions::new(true, Some(10));
    for family in BOTH {
        for broken in [
            &[0][..],
            &[5, 0],
            &[5, 1],
            &[5, 41],
            &[8, 255],
            &[2],
            &[1; 16],
        ] {
            let offered = [broken, &TIMESTAMPS].concat();
            let got = options(family, &offered, everything);
            assert_eq!(got, [Element::MaximumSegmentSize(1300)], "{offered:?}");
        }
        // Options with wrong lengths.
        let strange = [&[8, 6, 1, 2, 3, 4], &TIMESTAMPS[..], &[4, 3, 0], &[3, 2]].concat();
        let got = options(family, &strange, everything);
        assert_eq!(got.len(), 2, "{got:?}");
    }
}

/// The network stack's clock starts again at 0 every 50 days.
#[test]
fn timestamps_are_not_in_the_future() {
    for clock_ms in [0, 5, 63, 64, u32::MAX, u32::MAX - 63] {
        let responder = NativeResponder {
            socket: AssumedSocket::Full,
            now_ns: u64::from(clock_ms) * 1_000_000 + 999_999,
        };
        let (_, answer) = outcome_of(&responder, &syn(Ip::V4), Answer::SynCookie);
        let answer = answer.unwrap();
        let packet = checked(&answer);
        let Some(TransportSlice::Tcp(tcp)) = &packet.transport else {
            panic!("{packet:?}");
        };
        let stamp = tcp.options_iterator().find_map(|option| match option {
            Ok(Element::Timestamp(value, 77)) => Some(value),
            _ => None,
        });
        let age = clock_ms.wrapping_sub(stamp.unwrap());
        assert!(age < 64, "{age} at {clock_ms}");
        assert_eq!(stamp.unwrap() & 63, 16 + 7);
    }
}

#[test]
fn a_socket_with_room_gets_the_syn() {
    let responder = NativeResponder {
        socket: AssumedSocket::HasRoom,
        now_ns: 0,
    };
    for family in BOTH {
        let (outcome, answer) = outcome_of(&responder, &syn(family), Answer::SynCookie);
        assert_eq!((outcome, answer), (AnswerOutcome::ListenerHasRoom, None));
    }
}

#[test]
fn the_network_stack_gets_what_its_socket_wants() {
    for family in BOTH {
        for (reply, asked, outcome) in [
            (
                ListenerReply::Room,
                syn(family),
                AnswerOutcome::ListenerHasRoom,
            ),
            (ListenerReply::Nothing, syn(family), AnswerOutcome::Nothing),
            (
                ListenerReply::Valid,
                acknowledgement(family, 5),
                AnswerOutcome::ValidSynCookie,
            ),
            (
                ListenerReply::Nothing,
                acknowledgement(family, 5),
                AnswerOutcome::Nothing,
            ),
        ] {
            let (got, answer) = outcome_of(&Stack(reply), &asked, Answer::SynCookie);
            assert_eq!((got, answer), (outcome, None));
        }
    }
}

/// Independent of the network stack's reply.
#[test]
fn it_is_asked_about_nothing_else() {
    for family in BOTH {
        let mut broken = syn(family);
        *broken.last_mut().unwrap() ^= 1;
        for asked in [
            fin(family, &[]),
            reset(family),
            query(family),
            broken,
            answer_to(&syn(family), Answer::SynCookie).unwrap(),
        ] {
            let (got, answer) = outcome_of(&Stack(ListenerReply::Room), &asked, Answer::SynCookie);
            assert_eq!((got, answer), (AnswerOutcome::Nothing, None));
        }
    }
}

/// Without a network stack, only the acknowledgement of the assumed cookie is valid.
#[test]
fn an_assumed_cookie_comes_back() {
    for family in BOTH {
        let answer = answer_to(&syn(family), Answer::SynCookie).unwrap();
        let packet = checked(&answer);
        let Some(TransportSlice::Tcp(tcp)) = &packet.transport else {
            panic!("{packet:?}");
        };
        let next = tcp.sequence_number().wrapping_add(1);
        let brought = |number| {
            let frame = acknowledgement(family, number);
            outcome_of(&NativeResponder::default(), &frame, Answer::SynCookie).0
        };
        assert_eq!(brought(next), AnswerOutcome::ValidSynCookie);
        assert_eq!(brought(next.wrapping_add(1)), AnswerOutcome::Nothing);
        let other = outcome_of(
            &NativeResponder::default(),
            &segment(family, b"GET"),
            Answer::SynCookie,
        );
        assert_eq!(other.0, AnswerOutcome::Nothing);
    }
}

/// The kernel's functions take parts of the exchange.
#[test]
fn the_parts_of_a_segment() {
    for (family, addresses) in [(Ip::V4, 8), (Ip::V6, 32)] {
        let frame = syn(family);
        let exchange = exchange_of(&frame).unwrap();
        let parts = parts(&exchange);
        let bytes = |part: Part| &exchange.bytes()[part.start..part.start + part.length as usize];
        let tcp = frame.len() - 40;
        assert_eq!(bytes(parts.ip), &frame[14..tcp]);
        assert_eq!(bytes(parts.tuple), &frame[tcp - addresses..tcp + 4]);
        assert_eq!(bytes(parts.tcp), &frame[tcp..]);
    }
}
