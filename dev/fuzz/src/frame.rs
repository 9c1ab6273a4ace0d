//! Any bytes as a frame: the parser finds the right facts.

use std::net::IpAddr;

use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice, err::Layer};
use limiter_common::{
    address::Address,
    answer::{
        Answer, AnswerOutcome, Exchange, InlineLoops, MORE_BYTES, NativeResponder, SHORTEST_FRAME,
        find_cookie, respond,
    },
    cookie::{CookieCheck, DnsCookie},
    packet::{self, Datagram, Facts, PacketKind, Transport},
    reason::Reason,
};
use limiter_native::{BytesFrame, answer_frame};

/// Appended to the frame, so that every header may end before the frame does.
const PADDING: [u8; 64] = [0xff; 64];

/// The most VLAN tags of a frame, and the length of one.
const MAX_TAGS: usize = 8;
const TAG: usize = 4;

/// The offset of the first tag, or else of the ethertype.
const FIRST_TAG: usize = 12;

/// The length of IPv6's header, and the number of the fragment header.
const IPV6: usize = 40;
const FRAGMENT: u8 = 44;

/// Every parsed header ends before this offset, except in the longest chains of extensions.
const CUTS: usize = 160;

/// Parses a frame: whole, padded and truncated.
pub fn run(data: &[u8]) {
    let facts = parse(data);
    if let Ok(facts) = facts {
        agrees_with_etherparse(data, &facts);
    }
    answers_are_short(data);
    cookies_are_there(data);
    tags_hide_nothing(data, facts);
    lies_count_for_nothing(data, facts);
    // Bytes beyond the frame's own lengths are not read.
    if matches!(facts, Ok(_) | Err(Reason::NotIp)) {
        assert_same(facts, parse(&[data, &PADDING].concat()), 0);
    }
    for end in 0..data.len().min(CUTS) {
        let cut = parse(&data[..end]);
        if cut.is_ok() {
            assert_same(cut, facts, 0);
        }
    }
}

/// A DNS cookie that the parser finds is in the frame, behind its option's code and length.
fn cookies_are_there(data: &[u8]) {
    let (mut exchange, mut cookie) = (Exchange::EMPTY, DnsCookie::default());
    if !exchange.read(&BytesFrame(data))
        || find_cookie(&exchange, &InlineLoops, &mut cookie) != CookieCheck::Valid
    {
        return;
    }
    let parts = [cookie.client, cookie.head, cookie.hash].map(u64::to_le_bytes);
    let option = [&[0, 10, 0, 24][..], &parts.concat()].concat();
    assert!(data.windows(option.len()).any(|bytes| bytes == option));
}

/// A DNS answer is never longer than the frame, other answers hardly. Only an ICMP error may answer
/// an answer.
fn answers_are_short(data: &[u8]) {
    let on_wire = |frame: &[u8]| frame.len().max(SHORTEST_FRAME as usize);
    for answer in Answer::ALL {
        let sent = answered(data, answer);
        if sent.is_empty() {
            continue;
        }
        let most = match answer {
            Answer::Drop => panic!("nothing is sent"),
            Answer::Truncate => data.len(),
            Answer::Reset | Answer::Prohibited | Answer::SynCookie => {
                on_wire(data) + MORE_BYTES as usize
            }
        };
        assert!(sent.len() <= most, "{answer:?}");
        if answer == Answer::SynCookie {
            offers_nothing_new(data, &sent);
        }
        assert!(answered(&sent, answer).is_empty(), "{answer:?}");
    }
}

/// A SYN-ACK has no option that the SYN lacks, except the largest segment size, and all of its
/// options are whole.
fn offers_nothing_new(syn: &[u8], answer: &[u8]) {
    let options = |frame: &[u8]| {
        let packet = LaxSlicedPacket::from_ethernet(frame).expect("an Ethernet header");
        let Some(TransportSlice::Tcp(tcp)) = packet.transport else {
            panic!("no TCP: {frame:02x?}");
        };
        tcp.options().to_vec()
    };
    let (offered, sent) = (options(syn), options(answer));
    let has = |kind: u8| offered.contains(&kind);
    let mut rest = &sent[..];
    while let [kind, after @ ..] = rest {
        rest = match (*kind, after) {
            (1, _) => after,
            (2, [4, ..]) => &after[3..],
            (3, [3, scale, ..]) => {
                assert!(has(3) && *scale <= 14);
                &after[2..]
            }
            (4, [2, ..]) => {
                assert!(has(4));
                &after[1..]
            }
            (8, [10, ..]) => {
                assert!(has(8));
                &after[9..]
            }
            _ => panic!("strange options: {sent:02x?}"),
        };
    }
}

/// Returns the answer to a frame; empty if it gets none.
fn answered(frame: &[u8], answer: Answer) -> Vec<u8> {
    let mut exchange = Exchange::EMPTY;
    if !exchange.read(&BytesFrame(frame)) {
        return Vec::new();
    }
    match respond(&NativeResponder::default(), &mut exchange, answer) {
        AnswerOutcome::Answer(_) => answer_frame(frame, &exchange),
        _ => Vec::new(),
    }
}

fn parse(data: &[u8]) -> Result<Facts, Reason> {
    let mut facts = Facts::NONE;
    packet::parse(&BytesFrame(data), &mut facts)?;
    assert_eq!(facts.length as usize, data.len());
    Ok(facts)
}

/// Up to the largest number, tags do not change the facts.
fn tags_hide_nothing(data: &[u8], facts: Result<Facts, Reason>) {
    if data.len() < FIRST_TAG + 2 {
        return;
    }
    let tags = tags(data);
    let (addresses, rest) = data.split_at(FIRST_TAG);
    for more in 0..=MAX_TAGS + 2 {
        let around: Vec<u8> = [[0x81, 0, 0, 0], [0x88, 0xa8, 0, 5]]
            .into_iter()
            .cycle()
            .take(more)
            .flatten()
            .collect();
        let tagged = parse(&[addresses, &around, rest].concat());
        if tags + more > MAX_TAGS {
            assert_eq!(tagged, Err(Reason::MalformedVlan));
        } else {
            let later = u32::try_from(around.len()).expect("a small number");
            assert_same(facts, tagged, later);
        }
    }
}

/// Returns the number of tags of a frame.
fn tags(data: &[u8]) -> usize {
    let is_tag = |tag: &&[u8]| matches!(tag[..2], [0x81 | 0x91, 0] | [0x88, 0xa8]);
    data[FIRST_TAG..]
        .chunks_exact(2)
        .step_by(TAG / 2)
        .take_while(is_tag)
        .count()
}

/// A later IPv6 fragment's next header may be wrong, and changes no fact.
fn lies_count_for_nothing(data: &[u8], facts: Result<Facts, Reason>) {
    let unknown = |facts: &Facts| facts.transport == Transport::UnknownProtocol;
    if !facts.as_ref().is_ok_and(unknown) {
        return;
    }
    let header = FIRST_TAG + tags(data) * TAG + 2;
    let fragment = header + IPV6;
    let offset = |at: usize| u16::from_be_bytes([data[at + 2], data[at + 3]]) >> 3;
    if data[header + 6] != FRAGMENT || offset(fragment) == 0 {
        // The fragment header comes after other headers, perhaps even after a first fragment's, and
        // their next header counts. Frames without them are enough for this test.
        return;
    }
    for next in [0, 6, 17, FRAGMENT, 58, 59, 60, 255] {
        let mut lying = data.to_vec();
        lying[fragment] = next;
        assert_eq!(parse(&lying), facts);
    }
}

/// Compares facts except for the length. The other frame's headers begin `later` bytes later.
fn assert_same(one: Result<Facts, Reason>, other: Result<Facts, Reason>, later: u32) {
    let without_length = |facts: Facts| Facts { length: 0, ..facts };
    let moved = |mut facts: Facts| {
        if facts.datagram != Datagram::NONE {
            facts.datagram.start += later;
        }
        facts
    };
    assert_eq!(
        one.map(without_length).map(moved),
        other.map(without_length)
    );
}

/// Compares the facts with the ones of another parser, as far as it finds any.
fn agrees_with_etherparse(data: &[u8], facts: &Facts) {
    let Ok(other) = LaxSlicedPacket::from_ethernet(data) else {
        return;
    };
    let (source, destination): (IpAddr, IpAddr) = match &other.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            if ip.extensions().auth.is_some() {
                // Unlike our parser, it looks behind the IPsec header in IPv4.
                return;
            }
            let header = ip.header();
            (header.source().into(), header.destination().into())
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            let header = ip.header();
            (header.source().into(), header.destination().into())
        }
        _ => return,
    };
    assert_eq!(facts.source, source.into());
    let destination = Address::from(destination);
    assert_eq!(
        (facts.destination_high, facts.destination_low),
        (destination.high, destination.low)
    );
    let ports = (facts.source_port, facts.destination_port);
    let hop_limit = match &other.net {
        Some(LaxNetSlice::Ipv6(ip)) => Some(ip.header().hop_limit()),
        _ => None,
    };
    // It accepts fewer extension headers, each in its place, and finds no transport behind others.
    match (&other.transport, &other.stop_err) {
        (Some(TransportSlice::Tcp(tcp)), _) => {
            assert_eq!(facts.transport, Transport::Tcp);
            // Byte 13 of the header.
            assert_eq!(facts.kind.tcp_flags(), tcp.slice()[13]);
            assert_eq!(ports, (tcp.source_port(), tcp.destination_port()));
        }
        (Some(TransportSlice::Udp(udp)), _) => {
            assert_eq!(facts.transport, Transport::Ports);
            assert_eq!(ports, (udp.source_port(), udp.destination_port()));
        }
        (Some(TransportSlice::Icmpv6(message)), _) => {
            assert_eq!(facts.transport, Transport::Other);
            let first = if hop_limit == Some(255) {
                PacketKind::ICMPV6_ON_LINK
            } else {
                PacketKind::ICMPV6
            };
            assert_eq!(facts.kind.number(), first + u16::from(message.type_u8()));
        }
        (Some(TransportSlice::Icmpv4(message)), _) => {
            assert_eq!(facts.transport, Transport::Other);
            let number = PacketKind::ICMP + u16::from(message.type_u8());
            assert_eq!(facts.kind.number(), number);
        }
        (None, Some((error, Layer::TcpHeader))) => panic!("no TCP header: {error}"),
        // Other protocols have only a number.
        _ => {}
    }
}
