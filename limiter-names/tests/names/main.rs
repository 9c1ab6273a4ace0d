//! Flows of honest and hostile clients, through the whole reader.

mod bounds;
mod follower;
mod memory;
mod quic;
mod real;
mod splits;
mod standard;
mod tls;

use std::net::Ipv4Addr;

use limiter_names::{Flow, NoName, Outcome, Protocol, Reader, Segment, Settings};

const NAME: &str = "www.example.com";

fn flow(protocol: Protocol) -> Flow {
    Flow {
        client: Ipv4Addr::new(192, 0, 2, 1).into(),
        server: Ipv4Addr::new(198, 51, 100, 1).into(),
        client_port: 50_000,
        server_port: 443,
        protocol,
    }
}

/// The sequence number of a connection's first byte; the numbers soon wrap.
const FIRST: u32 = u32::MAX - 700;

/// Feeds pieces of a stream, each from a position in it.
fn feed_tcp<'p>(
    reader: &mut Reader,
    is_first_known: bool,
    pieces: impl IntoIterator<Item = (usize, &'p [u8])>,
) -> Option<Outcome> {
    let mut outcome = None;
    for (position, payload) in pieces {
        let segment = Segment::Tcp {
            sequence: FIRST.wrapping_add(u32::try_from(position).expect("a short stream")),
            first: is_first_known.then_some(FIRST),
            payload,
        };
        let read = reader.feed(0, flow(Protocol::Tcp), segment);
        // Pieces behind the outcome are left out.
        outcome = outcome.or(read);
        if outcome.is_some() {
            break;
        }
    }
    outcome
}

/// Reads a stream that comes at once.
fn read_tcp(stream: &[u8]) -> Option<Outcome> {
    let mut reader = Reader::new(Settings::default());
    feed_tcp(&mut reader, true, [(0, stream)])
}

#[track_caller]
fn assert_named(outcome: Option<&Outcome>, name: &str) {
    let Some(Outcome::Name(found)) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(found.name.as_str(), name);
}

#[track_caller]
fn assert_unnamed(outcome: Option<&Outcome>, reason: NoName) {
    assert_eq!(outcome, Some(&Outcome::NoName(reason)));
}
