//! SYN cookies: what asks for one, the answer, and what brings one back.

extern crate std;

use std::vec::Vec;

use etherparse::{NetSlice, TcpOptionElement, TransportSlice};

use super::{
    examples::checked,
    scene::{
        BOTH, CLIENT_MAC, Ip, SERVER_MAC, acknowledgement, answer_to, exchange_of, fin, query,
        reset, response_to, segment, syn,
    },
};
use crate::answer::{
    Answer, Cookie, Exchange, Heard, InlineLoops, NativeResponder, Part, Responder, Response,
    Written, parts, write, write_syn_ack,
};

/// A network stack that says what the test wants.
struct Stack(Heard);

impl Responder for Stack {
    fn write(&self, exchange: &mut Exchange, answer: Answer) -> Written {
        write(exchange, answer, &InlineLoops)
    }

    fn ask(&self, _: &Exchange) -> Heard {
        self.0
    }

    fn write_syn_ack(&self, exchange: &mut Exchange, cookie: Cookie) -> u32 {
        write_syn_ack(exchange, cookie, &InlineLoops)
    }
}

const COOKIE: Cookie = Cookie {
    number: 0x89ab_cdef,
    mss: 1300,
};

#[test]
fn a_syn_is_answered_with_the_cookie() {
    for family in BOTH {
        let asked = syn(family);
        let (response, answer) =
            response_to(&Stack(Heard::Cookie(COOKIE)), &asked, Answer::SynCookie);
        let answer = answer.unwrap();
        assert_eq!(
            response,
            Response::Answer(u32::try_from(answer.len() - 14).unwrap())
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
        assert_eq!(options, [TcpOptionElement::MaximumSegmentSize(1300)]);
        assert!(tcp.payload().is_empty());
    }
}

#[test]
fn the_network_stack_gets_what_its_socket_wants() {
    for family in BOTH {
        for (heard, asked, response) in [
            (Heard::Room, syn(family), Response::ListenerHasRoom),
            (Heard::Nothing, syn(family), Response::Nothing),
            (
                Heard::Valid,
                acknowledgement(family, 5),
                Response::ValidSynCookie,
            ),
            (
                Heard::Nothing,
                acknowledgement(family, 5),
                Response::Nothing,
            ),
        ] {
            let (got, answer) = response_to(&Stack(heard), &asked, Answer::SynCookie);
            assert_eq!((got, answer), (response, None));
        }
    }
}

/// Whatever the network stack would say.
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
            let (got, answer) = response_to(&Stack(Heard::Room), &asked, Answer::SynCookie);
            assert_eq!((got, answer), (Response::Nothing, None));
        }
    }
}

/// Without a network stack, what a client acknowledges of the assumed cookie is valid, and nothing
/// else.
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
            response_to(&NativeResponder, &frame, Answer::SynCookie).0
        };
        assert_eq!(brought(next), Response::ValidSynCookie);
        assert_eq!(brought(next.wrapping_add(1)), Response::Nothing);
        let other = response_to(
            &NativeResponder,
            &segment(family, b"GET"),
            Answer::SynCookie,
        );
        assert_eq!(other.0, Response::Nothing);
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
