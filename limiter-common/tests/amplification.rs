//! A forger's gain by answers: over many random frames, no answer to DNS is longer than its query, and any
//! other at most 16 bytes longer than its packet on the wire.
//!
//! `LIMITER_ANSWERED_FRAMES` sets how many frames; with `--nocapture` the test prints its counts.

use std::env;

use etherparse::{IpHeaders, PacketBuilder, PacketBuilderStep, TcpHeader};
use fastrand::Rng;
use limiter_common::{
    answer::{
        Answer, AnswerOutcome, Exchange, MORE_BYTES, NativeResponder, SHORTEST_FRAME, respond,
    },
    packet::BytesFrame,
};

/// The environment variable for more frames, or fewer.
const FRAMES: &str = "LIMITER_ANSWERED_FRAMES";
const DEFAULT_FRAMES: u64 = 20_000;

/// The longest payload: it makes frames longer than any that gets an answer.
const LONGEST: usize = 2100;

const DNS: u16 = 53;

/// The answers of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct AnswerTally {
    answers: u64,
    /// Answers longer than their packets, and by how many bytes at most.
    longer: u64,
    most_more: usize,
    /// The bytes on the wire of all answers, and of their packets.
    bytes: u64,
    asked: u64,
}

impl AnswerTally {
    fn add(&mut self, asked: usize, sent: usize) {
        self.answers += 1;
        self.longer += u64::from(sent > asked);
        self.most_more = self.most_more.max(sent.saturating_sub(asked));
        self.bytes += sent as u64;
        self.asked += asked as u64;
    }
}

/// Returns the length of the frame that is sent back; `None`: none is.
fn answer_to(frame: &[u8], answer: Answer) -> Option<usize> {
    let mut exchange = Exchange::EMPTY;
    if !exchange.read(&BytesFrame(frame)) {
        return None;
    }
    match respond(&NativeResponder::default(), &mut exchange, answer) {
        AnswerOutcome::Answer(length) => Some((exchange.link_length() + length) as usize),
        _ => None,
    }
}

/// Without the frame's checksum.
fn on_wire(length: usize) -> usize {
    length.max(SHORTEST_FRAME as usize)
}

/// Returns random bytes, mostly few.
fn bytes(random: &mut Rng) -> Vec<u8> {
    let most = *random.choice(&[8, 64, 600, LONGEST]).unwrap_or(&0);
    let length = random.usize(..=most);
    (0..length).map(|_| random.u8(..)).collect()
}

/// Returns a name as DNS writes it, which may be too long.
fn name(random: &mut Rng) -> Vec<u8> {
    let mut name = Vec::new();
    for _ in 0..random.usize(..6) {
        let length = random.u8(1..=63);
        name.push(length);
        name.extend((0..length).map(|_| random.u8(..)));
    }
    name.push(0);
    name
}

/// Returns a DNS query, mostly a right one, with more records or none.
fn query(random: &mut Rng) -> Vec<u8> {
    let mut query = random.u16(..).to_be_bytes().to_vec();
    // Recursion desired and other bits that a query may have; sometimes bits that it must not have.
    query.extend(match random.u8(..8) {
        0 => [random.u8(..), random.u8(..)],
        _ => [random.u8(..) & 0x01, random.u8(..) & 0x30],
    });
    let questions = u16::from(random.u8(..16) != 0);
    let more = random.u16(..3);
    for count in [questions, 0, 0, more] {
        query.extend(count.to_be_bytes());
    }
    query.extend(name(random));
    query.extend([0, random.u8(..), 0, 1]);
    for _ in 0..more {
        query.extend([0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, random.u8(..)]);
        let padding = bytes(random);
        query.extend(padding);
    }
    query
}

/// Returns the IP header.
fn ip(is_v4: bool, random: &mut Rng) -> PacketBuilderStep<IpHeaders> {
    let ttl = random.u8(1..);
    if is_v4 {
        let mut host = || [198, 51, 100, random.u8(..)];
        PacketBuilder::ipv4(host(), host(), ttl)
    } else {
        let mut host = || {
            let mut address = [0; 16];
            address[..2].copy_from_slice(&[0x20, 1]);
            address[8..].fill_with(|| random.u8(..));
            address
        };
        PacketBuilder::ipv6(host(), host(), ttl)
    }
}

/// Returns options, mostly right ones, in any order; at times with a gap between them, or any bytes.
fn options(random: &mut Rng) -> Vec<u8> {
    const MOST: usize = 40;
    let number = random.u8(..);
    let mut all = [
        vec![2, 4, 5, number],
        vec![4, 2],
        vec![8, 10, 0, 0, 1, number, 0, 0, 0, 0],
        vec![3, 3, number % 16],
        vec![1],
        vec![number, random.u8(..)],
    ];
    random.shuffle(&mut all);
    let mut options = all[..random.usize(..=all.len())].concat();
    options.resize(options.len().next_multiple_of(4).min(MOST), 0);
    options
}

/// Returns a TCP header, rarely with the reset flag.
fn tcp(random: &mut Rng) -> TcpHeader {
    let ports = [random.u16(1..), random.u16(1..)];
    let mut tcp = TcpHeader::new(ports[0], ports[1], random.u32(..), random.u16(..));
    tcp.acknowledgment_number = random.u32(..);
    tcp.fin = random.bool();
    tcp.syn = random.bool();
    tcp.ack = random.bool();
    tcp.psh = random.bool();
    tcp.rst = random.u8(..16) == 0;
    let options = options(random);
    tcp.set_options_raw(&options).expect("options have room");
    tcp
}

/// Returns an IP packet with right checksums.
fn packet(is_v4: bool, random: &mut Rng) -> Vec<u8> {
    let mut packet = Vec::new();
    let before = ip(is_v4, random);
    let ports = [random.u16(1..), random.u16(1..)];
    let written = match random.u8(..8) {
        0..=2 => before.udp(ports[0], DNS).write(&mut packet, &query(random)),
        3 => {
            let to = if random.bool() { DNS } else { ports[1] };
            before.udp(ports[0], to).write(&mut packet, &bytes(random))
        }
        4..=6 => {
            let payload = if random.bool() {
                bytes(random)
            } else {
                Vec::new()
            };
            before.tcp_header(tcp(random)).write(&mut packet, &payload)
        }
        _ if is_v4 => {
            let echo = before.icmpv4_echo_request(ports[0], ports[1]);
            echo.write(&mut packet, &bytes(random))
        }
        _ => {
            let echo = before.icmpv6_echo_request(ports[0], ports[1]);
            echo.write(&mut packet, &bytes(random))
        }
    };
    written.expect("memory takes a packet");
    packet
}

/// Returns a frame, mostly one that may get an answer.
fn frame(random: &mut Rng) -> Vec<u8> {
    if random.u8(..16) == 0 {
        return bytes(random);
    }
    let is_v4 = random.bool();
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    let tags = if random.bool() { 0 } else { random.u8(..4) };
    for tag in 1..=tags {
        frame.extend([0x81, 0, 0, tag]);
    }
    frame.extend(if is_v4 { [8, 0] } else { [0x86, 0xdd] });
    frame.extend(packet(is_v4, random));
    if random.u8(..8) == 0 {
        frame.extend(bytes(random));
    }
    if random.u8(..8) == 0 {
        let at = random.usize(..frame.len());
        frame[at] = random.u8(..);
    }
    if random.u8(..16) == 0 {
        frame.truncate(random.usize(..=frame.len()));
    }
    frame
}

#[test]
fn no_answer_is_much_longer_than_what_it_answers() {
    let frames = env::var(FRAMES).map_or(DEFAULT_FRAMES, |number| number.parse().expect(FRAMES));
    let mut random = Rng::new();
    let mut all = [AnswerTally::default(); Answer::COUNT];
    for _ in 0..frames {
        let frame = frame(&mut random);
        let asked = on_wire(frame.len());
        for (answer, found) in Answer::ALL.into_iter().zip(&mut all) {
            let Some(sent) = answer_to(&frame, answer) else {
                continue;
            };
            let more = match answer {
                Answer::Drop => panic!("nothing is sent: {frame:02x?}"),
                Answer::Truncate => 0,
                Answer::Reset | Answer::Prohibited | Answer::SynCookie => MORE_BYTES as usize,
            };
            let sent = on_wire(sent);
            assert!(
                sent <= asked + more,
                "{answer:?}, {sent} bytes: {frame:02x?}"
            );
            found.add(asked, sent);
        }
    }
    println!("{frames} frames");
    for (answer, found) in Answer::ALL.into_iter().zip(all).skip(1) {
        println!("{}: {found:?}", answer.name());
        // Else the frames are too strange to show anything.
        assert!(found.answers > frames / 40, "{answer:?}: {found:?}");
    }
}
