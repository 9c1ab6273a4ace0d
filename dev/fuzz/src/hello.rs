//! Any bytes as the beginning of a flow: the result does not depend on how the bytes are split and
//! ordered.

use std::net::{IpAddr, Ipv4Addr};

use arbitrary::{Arbitrary, Unstructured};
use limiter_names::{
    Flow, FoundName, NameSource, NoName, Outcome, Protocol, Reader, Segment, Settings,
    testing::{Hello, Initial, Version, crypto, records},
};

/// A client's first bytes.
#[derive(Arbitrary, Debug)]
struct Input<'a> {
    kind: Kind,
    /// Determines where the bytes are split, and the order of the pieces.
    seed: u64,
    /// The sequence number of a connection's first byte.
    first: u32,
    /// The longest piece.
    piece: u8,
    /// How many bytes are read.
    most: u16,
    bytes: &'a [u8],
}

#[derive(Arbitrary, Debug)]
enum Kind {
    /// The bytes themselves, over TCP.
    Stream,
    /// A hello with the bytes as its name, over TCP and QUIC.
    Name,
    /// A hello with the bytes as the rest of its extensions, over TCP and QUIC.
    Extensions,
    /// An HTTP/1 request with the bytes as its host.
    Host,
    /// The header block of an HTTP/2 request.
    HeaderBlock,
    /// A datagram.
    Datagram,
    /// The frames of a QUIC packet.
    Frames,
}

/// The most bytes of a flow; more take longer and find no other bugs.
const LONGEST: usize = 1 << 12;

/// Reads a client's first bytes.
pub fn run(data: &[u8]) {
    let Ok(mut input) = Input::arbitrary_take_rest(Unstructured::new(data)) else {
        return;
    };
    input.bytes = &input.bytes[..input.bytes.len().min(LONGEST)];
    let bytes = input.bytes;
    match input.kind {
        Kind::Stream => stream(&input, bytes),
        Kind::Name | Kind::Extensions => handshake(&input, &message(&input)),
        Kind::Host => stream(
            &input,
            &[b"GET / HTTP/1.1\r\nHost: ", bytes, b"\r\n\r\n"].concat(),
        ),
        Kind::HeaderBlock => stream(&input, &http2(bytes)),
        Kind::Datagram => datagrams(&[bytes.to_vec()], &input),
        Kind::Frames => {
            let frames = &bytes[..bytes.len().min(1100)];
            datagrams(&[initial(0).sealed(frames, 1200)], &input);
        }
    }
}

fn message(input: &Input<'_>) -> Vec<u8> {
    let is_name = matches!(input.kind, Kind::Name);
    let hello = Hello {
        name: is_name.then_some(input.bytes),
        applications: &[b"h2"],
        key_share: 32,
        is_encrypted: false,
        ..Hello::NONE
    };
    let mut message = hello.message();
    if !is_name {
        // The lengths of the message and of all extensions, which begin behind the compression
        // methods.
        message.extend(input.bytes);
        let length = |value: usize| u16::try_from(value).expect("a short hello").to_be_bytes();
        let all = length(message.len() - 4);
        message[2..4].copy_from_slice(&all);
        let extensions = length(message.len() - 47);
        message[45..47].copy_from_slice(&extensions);
    }
    message
}

fn http2(block: &[u8]) -> Vec<u8> {
    let length = u16::try_from(block.len())
        .expect("a short block")
        .to_be_bytes();
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let headers = [0, length[0], length[1], 1, 4, 0, 0, 0, 1];
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    [&preface[..], &settings, &headers, block].concat()
}

/// The same hello has the same name over TCP and over QUIC.
fn handshake(input: &Input<'_>, message: &[u8]) {
    let over_tcp = stream_read(input, &records(message, 1 << 14));
    let mut random = fastrand::Rng::with_seed(input.seed);
    let mut parts: Vec<Vec<u8>> = Vec::new();
    let most = usize::from(input.piece).max(message.len() / 16).max(1);
    let mut from = 0;
    while from < message.len() {
        let to = (from + random.usize(1..=most)).min(message.len());
        parts.push(crypto(from, &message[from..to]));
        from = to;
    }
    random.shuffle(&mut parts);
    let datagrams = parts.iter().zip(0..).map(|(part, number)| {
        let frames = [&[1, 0][..], part].concat();
        initial(number).sealed(&frames, 1200.max(frames.len() + 100))
    });
    let over_quic = datagrams_read(&datagrams.collect::<Vec<_>>(), input);
    let how = |outcome: Option<Outcome>, how| match outcome {
        Some(Outcome::Name(found)) => Some(Outcome::Name(FoundName {
            how,
            bytes: None,
            ..found
        })),
        outcome => outcome,
    };
    // TCP adds the records' headers.
    let is_long = |outcome: &Option<Outcome>| {
        matches!(outcome, None | Some(Outcome::NoName(NoName::TooLong)))
    };
    if !is_long(&over_tcp) && !is_long(&over_quic) {
        assert_eq!(how(over_tcp, NameSource::Quic), over_quic);
    }
}

fn initial(number: u32) -> Initial<'static> {
    Initial {
        version: Version::One,
        keyed_by: b"01234567",
        connection: b"01234567",
        token: &[],
        number,
    }
}

const fn flow(protocol: Protocol) -> Flow {
    Flow {
        client: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
        server: IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1)),
        client_port: 50_000,
        server_port: 443,
        protocol,
    }
}

fn reader(input: &Input<'_>) -> Reader {
    Reader::new(Settings {
        flow_bytes: input.most.clamp(16, 4096),
        ..Settings::default()
    })
}

/// A name must be safe for terminals, files and command lines.
fn assert_harmless(outcome: Option<&Outcome>) {
    if let Some(Outcome::Name(found)) = outcome {
        let name = found.name.as_str();
        assert!((1..=253).contains(&name.len()) && !name.starts_with('-'));
        let is_harmless = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.')
        };
        assert!(name.bytes().all(is_harmless), "{name:?}");
    }
}

fn stream(input: &Input<'_>, bytes: &[u8]) {
    stream_read(input, bytes);
}

/// Reads a stream at once, and in overlapping pieces in any order.
fn stream_read(input: &Input<'_>, bytes: &[u8]) -> Option<Outcome> {
    let flow = flow(Protocol::Tcp);
    let first = input.first;
    let feed = |reader: &mut Reader, position: usize, payload| {
        let segment = Segment::Tcp {
            sequence: first.wrapping_add(u32::try_from(position).expect("a short stream")),
            first: Some(first),
            payload,
        };
        reader.feed(0, flow, segment)
    };
    let mut whole = reader(input);
    let at_once = feed(&mut whole, 0, bytes);
    assert_harmless(at_once.as_ref());

    let mut random = fastrand::Rng::with_seed(input.seed);
    let most = usize::from(input.piece).max(bytes.len() / 32).max(1);
    let mut pieces = Vec::new();
    let mut from = 0;
    while from < bytes.len() {
        let to = (from + random.usize(1..=most)).min(bytes.len());
        pieces.push((from.saturating_sub(random.usize(0..=most / 4)), to));
        from = to;
    }
    if random.bool() {
        random.shuffle(&mut pieces);
    }
    let mut split = reader(input);
    let mut outcome = None;
    for (from, to) in pieces {
        outcome = feed(&mut split, from, &bytes[from..to]);
        if outcome.is_some() {
            break;
        }
    }
    assert_eq!(at_once, outcome);
    assert_eq!(whole.give_up(&flow), split.give_up(&flow));
    at_once
}

fn datagrams(datagrams: &[Vec<u8>], input: &Input<'_>) {
    datagrams_read(datagrams, input);
}

fn datagrams_read(datagrams: &[Vec<u8>], input: &Input<'_>) -> Option<Outcome> {
    let mut reader = reader(input);
    for payload in datagrams {
        let outcome = reader.feed(0, flow(Protocol::Udp), Segment::Udp { payload });
        assert_harmless(outcome.as_ref());
        if outcome.is_some() {
            return outcome;
        }
    }
    None
}
