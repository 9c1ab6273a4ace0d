//! Timeouts and room.

use limiter_names::{
    DiscardCounts, Flow, NoName, Outcome, Protocol, Reader, Segment, Settings,
    testing::{Hello, records},
};

use super::{NAME, assert_named, assert_unnamed, flow};

const SMALL: Settings = Settings {
    flows: 8,
    bytes: 4000,
    flow_bytes: 2000,
    timeout_ns: 100,
};

fn stream() -> Vec<u8> {
    let hello = Hello {
        name: Some(NAME.as_bytes()),
        applications: &[],
        key_share: 1200,
        is_encrypted: false,
        ..Hello::NONE
    };
    records(&hello.message(), 1 << 14)
}

/// The flow from a port.
fn from_port(client_port: u16) -> Flow {
    Flow {
        client_port,
        ..flow(Protocol::Tcp)
    }
}

fn feed(
    reader: &mut Reader,
    now: u64,
    port: u16,
    position: u32,
    payload: &[u8],
) -> Option<Outcome> {
    let segment = Segment::Tcp {
        sequence: 5000 + position,
        first: Some(5000),
        payload,
    };
    reader.feed(now, from_port(port), segment)
}

#[test]
fn a_flow_has_its_time_from_its_first_piece_on() {
    let stream = stream();
    let mut reader = Reader::new(SMALL);
    assert!(feed(&mut reader, 1000, 1, 0, &stream[..10]).is_none());
    assert!(feed(&mut reader, 1099, 1, 10, &stream[10..20]).is_none());
    assert_eq!(reader.half_there(), 1);
    // Sending one byte at a time keeps no entry.
    assert!(feed(&mut reader, 1100, 1, 20, &stream[20..]).is_none());
    let expected = DiscardCounts {
        timed_out: 1,
        gave_way: 0,
    };
    assert_eq!(reader.forgotten(), expected);
    assert_eq!(reader.give_up(&from_port(1)), Some(NoName::Incomplete));
    assert_eq!(reader.half_there(), 0);
    // A clock that goes back ends no flow.
    assert!(feed(&mut reader, 2000, 1, 0, &stream[..10]).is_none());
    assert_named(feed(&mut reader, 1000, 1, 10, &stream[10..]).as_ref(), NAME);
}

#[test]
fn the_oldest_flow_gives_way() {
    let stream = stream();
    let mut reader = Reader::new(SMALL);
    for port in 0..12 {
        assert!(feed(&mut reader, 0, port, 0, &stream[..100]).is_none());
    }
    assert_eq!(reader.half_there(), 8);
    assert_eq!(reader.forgotten().gave_way, 4);
    // The rest of an evicted flow gives no name; the other flows are complete.
    assert!(feed(&mut reader, 0, 3, 100, &stream[100..]).is_none());
    for port in 5..12 {
        let outcome = feed(&mut reader, 0, port, 100, &stream[100..]);
        assert_named(outcome.as_ref(), NAME);
    }
    assert_eq!(reader.forgotten().gave_way, 5);
}

#[test]
fn bytes_are_bounded_whatever_their_number() {
    let mut reader = Reader::new(SMALL);
    let stream = stream();
    let empty = reader.memory();
    for port in 0..100 {
        let position = u32::from(port) * 3 % 700;
        feed(&mut reader, 0, port, position, &stream[..1000]);
        assert!(reader.half_there() <= 3);
    }
    for position in (0..2000).step_by(2) {
        feed(&mut reader, 0, 500, position, b"x");
    }
    assert!(reader.memory() < empty + SMALL.bytes + 20_000);
    for port in 0..=500 {
        reader.give_up(&from_port(port));
    }
    assert_eq!(reader.half_there(), 0);
}

#[test]
fn a_new_connection_from_the_same_port_begins_anew() {
    let stream = stream();
    let mut reader = Reader::new(SMALL);
    assert!(feed(&mut reader, 0, 1, 0, &stream[..100]).is_none());
    let segment = |position: usize, payload| Segment::Tcp {
        sequence: 77 + u32::try_from(position).unwrap(),
        first: Some(77),
        payload,
    };
    let flow = from_port(1);
    assert!(reader.feed(0, flow, segment(0, &stream[..700])).is_none());
    let outcome = reader.feed(0, flow, segment(700, &stream[700..]));
    assert_named(outcome.as_ref(), NAME);
}

#[test]
fn nothing_behind_the_bound_is_read() {
    let hello = Hello {
        name: Some(NAME.as_bytes()),
        applications: &[],
        key_share: 1990,
        is_encrypted: false,
        ..Hello::NONE
    };
    let stream = records(&hello.message(), 1 << 14);
    let mut reader = Reader::new(SMALL);
    assert!(feed(&mut reader, 0, 1, 0, &stream[..1000]).is_none());
    let outcome = feed(&mut reader, 0, 1, 1000, &stream[1000..]);
    assert_unnamed(outcome.as_ref(), NoName::TooLong);
    let request = format!("GET /{} HTTP/1.1\r\nHost: a.b\r\n\r\n", "x".repeat(2000));
    let mut reader = Reader::new(SMALL);
    assert!(feed(&mut reader, 0, 1, 0, &request.as_bytes()[..1500]).is_none());
    let outcome = feed(&mut reader, 0, 1, 1500, &request.as_bytes()[1500..]);
    assert_unnamed(outcome.as_ref(), NoName::TooLong);
}
