//! Live flows: the first name stands, and no flow displaces another.

use limiter_names::{
    Change, Flow, Follower, FollowerSettings, Name, NoName, Protocol, Segment, Settings,
    testing::{Hello, Initial, Version, crypto, records},
};

use super::{FIRST, NAME, flow};

const SMALL: FollowerSettings = FollowerSettings {
    reader: Settings {
        flows: 8,
        bytes: 20_000,
        flow_bytes: 4096,
        timeout_ns: 1_000_000,
    },
    flows: 8,
    name_bytes: 1000,
    first_bytes: 10_000,
    pieces_a_second: 1_000_000_000,
};

fn hello(name: &str) -> Vec<u8> {
    let hello = Hello {
        name: Some(name.as_bytes()),
        applications: &[],
        key_share: 600,
        is_encrypted: false,
        ..Hello::NONE
    };
    hello.message()
}

fn stream(name: &str) -> Vec<u8> {
    records(&hello(name), 1 << 14)
}

/// A client's first datagram.
fn datagram(name: &str, connection: &[u8]) -> Vec<u8> {
    let initial = Initial {
        version: Version::One,
        keyed_by: connection,
        connection,
        token: &[],
        number: 0,
    };
    initial.sealed(&crypto(0, &hello(name)), 1250)
}

fn from_port(client_port: u16, protocol: Protocol) -> Flow {
    Flow {
        client_port,
        ..flow(protocol)
    }
}

/// The names of live flows.
struct LiveNames(Follower);

impl LiveNames {
    fn new(settings: FollowerSettings) -> Self {
        Self(Follower::new(settings))
    }

    fn tcp(&mut self, now_ns: u64, port: u16, position: usize, payload: &[u8]) -> Vec<Change> {
        let segment = Segment::Tcp {
            sequence: FIRST.wrapping_add(u32::try_from(position).expect("a position in 32 bits")),
            first: Some(FIRST),
            payload,
        };
        self.feed(now_ns, from_port(port, Protocol::Tcp), segment)
    }

    fn udp(&mut self, now_ns: u64, port: u16, payload: &[u8]) -> Vec<Change> {
        let flow = from_port(port, Protocol::Udp);
        self.feed(now_ns, flow, Segment::Udp { payload })
    }

    fn feed(&mut self, now_ns: u64, flow: Flow, segment: Segment<'_>) -> Vec<Change> {
        let mut changes = Vec::new();
        self.0
            .feed(now_ns, flow, segment, |change| changes.push(change));
        changes
    }

    /// The kept names, by port.
    fn kept(&self) -> Vec<(u16, Option<&str>)> {
        let flows = self.0.flows();
        let mut kept: Vec<_> = flows
            .map(|(flow, name)| (flow.client_port, name.map(Name::as_str)))
            .collect();
        kept.sort_unstable();
        kept
    }
}

#[track_caller]
fn assert_named(changes: &[Change], port: u16, name: &str) {
    let [Change::Named(flow, found)] = changes else {
        panic!("{changes:?}");
    };
    assert_eq!((flow.client_port, found.name.as_str()), (port, name));
}

/// A second hello begins behind the first and the bytes between them.
#[test]
fn a_second_hello_has_the_name_of_the_first() {
    let first = stream(NAME);
    let position = FIRST.wrapping_add(u32::try_from(first.len()).unwrap() + 6);
    let same = stream(NAME);
    let other = stream("other.example");
    let unnamed = records(&Hello::NONE.message(), 1 << 14);
    for (second, is_same) in [(&same, true), (&other, false), (&unnamed, false)] {
        let mut live = LiveNames::new(SMALL);
        let from = from_port(1, Protocol::Tcp);
        assert_named(&live.tcp(0, 1, 0, &first), 1, NAME);
        let (one, two) = second.split_at(20);
        let after = position.wrapping_add(20);
        // In any order, and with bytes before it.
        assert_eq!(
            live.0.feed_second_hello(0, from, position, (after, two)),
            None
        );
        let with_more = [&[0x14][..], one].concat();
        let segment = (position.wrapping_sub(1), &with_more[..]);
        let read = live.0.feed_second_hello(0, from, position, segment);
        let expected = is_same.then_some(&second[..]);
        assert_eq!(read, Some(expected.ok_or(NoName::Contradictory)));
    }
    let mut live = LiveNames::new(SMALL);
    let unknown = from_port(1, Protocol::Tcp);
    let read = live
        .0
        .feed_second_hello(0, unknown, position, (position, &same));
    assert_eq!(read, None);
}

#[test]
fn a_name_once_told_stands_until_the_flow_is_over() {
    let mut live = LiveNames::new(SMALL);
    let first = stream(NAME);
    assert_eq!(live.tcp(0, 1, 0, &first[..100]), []);
    assert_named(&live.tcp(0, 1, 100, &first[100..]), 1, NAME);
    assert_named(&live.udp(0, 2, &datagram(NAME, b"12345678")), 2, NAME);
    // Neither client nor forger changes it, and late pieces cost no budget.
    let other = "other.example.com";
    for payload in [stream(other), first[100..].to_vec()] {
        let position = first.len() - usize::from(payload.len() < first.len()) * payload.len();
        assert_eq!(live.tcp(1, 1, position, &payload), []);
        assert_eq!(live.udp(1, 2, &datagram(other, b"87654321")), []);
    }
    assert_eq!(live.kept(), [(1, Some(NAME)), (2, Some(NAME))]);
    assert_eq!(live.0.followed(Protocol::Tcp).pieces, 2);
    assert_eq!(live.0.followed(Protocol::Udp).pieces, 1);
    // The ports are reused.
    for (port, protocol) in [(1, Protocol::Tcp), (2, Protocol::Udp)] {
        live.0.end(&from_port(port, protocol));
    }
    assert_eq!(live.kept(), []);
    assert_named(&live.tcp(2, 1, 0, &stream(other)), 1, other);
    assert_named(&live.udp(2, 2, &datagram(other, b"87654321")), 2, other);
}

/// The server may take either copy, so the client's name is uncertain.
#[test]
fn whoever_sends_other_bytes_at_one_position_contradicts_itself() {
    let (one, other) = (stream(NAME), stream(&NAME.replace('a', "b")));
    assert_eq!(one.len(), other.len());
    let middle = one.len() / 2;
    let [halves, others] = [&one, &other].map(|stream| stream.split_at(middle));
    let contradictory = |port| {
        let flow = from_port(port, Protocol::Tcp);
        vec![Change::Nameless(flow, NoName::Contradictory)]
    };
    let mut live = LiveNames::new(SMALL);
    // Before the name is read.
    assert_eq!(live.tcp(0, 1, middle, halves.1), []);
    assert_eq!(live.tcp(0, 1, middle, others.1), contradictory(1));
    assert_eq!(live.kept(), [(1, None)]);
    // Afterwards too, also behind a byte before the first, and for as long as the flow lives.
    assert_eq!(live.tcp(0, 2, middle, halves.1), []);
    assert_named(&live.tcp(0, 2, 0, halves.0), 2, NAME);
    for (position, payload) in [(0, &one[..]), (middle, halves.1), (1, &one[1..9])] {
        assert_eq!(live.tcp(5_000_000, 2, position, payload), []);
    }
    assert_eq!(live.0.first_bytes(&from_port(2, Protocol::Tcp)), one);
    let before = [&b"?"[..], &other].concat();
    for (position, payload) in [
        (0, &other[..]),
        (middle, others.1),
        (usize::MAX >> 32, &before),
    ] {
        assert_eq!(live.tcp(5_000_000, 2, position, payload), contradictory(2));
    }
    let reasons = live.0.followed(Protocol::Tcp).nameless;
    assert_eq!(reasons[NoName::Contradictory as usize], 4);
}

/// A client that sends too much alone is to blame; a client among many others is not.
#[test]
fn a_client_is_to_blame_for_what_it_does_not_send() {
    let mut live = LiveNames::new(FollowerSettings {
        pieces_a_second: 1600,
        ..SMALL
    });
    let stream = stream(NAME);
    let mut feed = |client: u8, port, payload: &[u8]| {
        let flow = Flow {
            client: [192, 0, 2, client].into(),
            ..from_port(port, Protocol::Tcp)
        };
        let segment = Segment::Tcp {
            sequence: FIRST,
            first: Some(FIRST),
            payload,
        };
        live.0.feed(0, flow, segment, |_| {})
    };
    assert!(feed(1, 1, &stream[..100]) && feed(1, 1, b""));
    // A hundred pieces a second, and a tenth of them at once.
    for port in 2..50 {
        assert!(feed(1, port, &stream));
    }
    let others: Vec<_> = (2..=255).map(|client| feed(client, 1, &stream)).collect();
    let before = others.iter().position(|is_to_blame| !is_to_blame);
    assert!((100..160).contains(&before.expect("all are read")));
    assert!(!others[253]);
    let followed = live.0.followed(Protocol::Tcp);
    assert_eq!((followed.pieces, followed.overrun), (160, 49 + 254 - 160));
}

/// Evicted bytes cannot be compared: a client must not benefit from waiting for the eviction.
#[test]
fn what_can_no_more_be_compared_is_contradictory() {
    let mut live = LiveNames::new(FollowerSettings {
        first_bytes: 1500,
        ..SMALL
    });
    let stream = stream(NAME);
    for port in 1..=3 {
        assert_named(&live.tcp(0, port, 0, &stream), port, NAME);
    }
    assert!(matches!(
        live.tcp(1, 1, 0, &stream)[..],
        [Change::Nameless(_, NoName::Contradictory)]
    ));
    assert_eq!(live.tcp(1, 3, 0, &stream), []);
}

#[test]
fn the_end_of_a_flow_takes_what_was_half_there() {
    let mut live = LiveNames::new(SMALL);
    let (one, other) = (stream(NAME), stream("other.example.com"));
    assert_eq!(live.tcp(0, 1, 0, &one[..300]), []);
    live.0.end(&from_port(1, Protocol::Tcp));
    assert_eq!(live.tcp(0, 1, 0, &other[..50]), []);
    assert_named(&live.tcp(0, 1, 50, &other[50..]), 1, "other.example.com");
}

#[test]
fn a_hello_byte_by_byte_and_from_its_end() {
    let mut live = LiveNames::new(SMALL);
    let stream = stream(NAME);
    let mut changes = Vec::new();
    for (position, byte) in stream.iter().enumerate() {
        assert_eq!(changes, []);
        changes = live.tcp(0, 1, position, &[*byte]);
        if !changes.is_empty() {
            break;
        }
    }
    assert_named(&changes, 1, NAME);
    for port in 2..4 {
        let middle = stream.len() / usize::from(port);
        assert_eq!(live.tcp(0, port, middle, &stream[middle..]), []);
        assert_named(&live.tcp(0, port, 0, &stream[..middle]), port, NAME);
    }
}

/// A server does not answer datagrams that it cannot decrypt: such a datagram must not hide the name in later ones.
#[test]
fn what_no_server_opens_does_not_end_a_flow_of_datagrams() {
    let mut live = LiveNames::new(SMALL);
    let mut spoilt = datagram(NAME, b"12345678");
    spoilt[700] ^= 1;
    for payload in [&spoilt[..], b"garbage", &[0xc0; 1250], &spoilt[..1199]] {
        assert_eq!(live.udp(0, 1, payload), []);
    }
    assert_named(&live.udp(0, 1, &datagram(NAME, b"12345678")), 1, NAME);
    let followed = live.0.followed(Protocol::Udp);
    assert_eq!(followed.nameless.iter().sum::<u64>(), 4);
    assert_eq!((followed.pieces, followed.named), (5, 1));
    // The bytes of a connection reach the server in any case.
    let mut foreign = live.tcp(0, 2, 0, &[b'?'; 4096]);
    assert!(matches!(foreign.pop(), Some(Change::Nameless(_, _))));
    assert_eq!(live.tcp(0, 2, 4096, &stream(NAME)), []);
    assert_eq!(live.kept(), [(1, Some(NAME)), (2, None)]);
    let reasons = live.0.followed(Protocol::Tcp).nameless;
    assert_eq!(reasons[NoName::Foreign as usize], 1);
}

/// A server drops segments outside its window, so they must not name a client.
#[test]
fn a_segment_far_ahead_does_not_name_its_flow() {
    let mut live = LiveNames::new(SMALL);
    let fake = stream("other.example.com");
    for position in [4096, 100_000, 1 << 31, (1 << 32) - 2000] {
        assert_eq!(live.tcp(0, 1, position, &fake), []);
    }
    assert_named(&live.tcp(0, 1, 0, &stream(NAME)), 1, NAME);
    // The position of this one is unknown.
    let anywhere = Segment::Tcp {
        sequence: FIRST,
        first: None,
        payload: &fake,
    };
    let flow = from_port(2, Protocol::Tcp);
    let expected = [Change::Nameless(flow, NoName::NoBeginning)];
    assert_eq!(live.feed(0, flow, anywhere), expected);
}

#[test]
fn forged_datagrams_take_nothing_from_connections() {
    let mut live = LiveNames::new(FollowerSettings {
        pieces_a_second: 3200,
        ..SMALL
    });
    let stream = stream(NAME);
    assert_named(&live.tcp(0, 1, 0, &stream), 1, NAME);
    assert_eq!(live.tcp(0, 2, 0, &stream[..100]), []);
    let mut gave_way = 0;
    for port in 10..1000 {
        let name = format!("{port}.example");
        let changes = live.udp(0, port, &datagram(&name, b"12345678"));
        let gone = changes
            .iter()
            .filter(|one| matches!(one, Change::GaveWay(_)));
        gave_way += gone.count();
    }
    let followed = live.0.followed(Protocol::Udp);
    assert_eq!((followed.pieces, followed.overrun), (20, 970));
    assert_eq!((followed.named, gave_way), (20, 12));
    assert_eq!(followed.gave_way, 12);
    assert_named(&live.tcp(0, 2, 100, &stream[100..]), 2, NAME);
    assert_named(&live.tcp(0, 3, 0, &stream), 3, NAME);
    assert_eq!(live.0.followed(Protocol::Tcp).overrun, 0);
}

#[test]
fn the_oldest_outcome_gives_way_before_the_new_one_is_told() {
    let mut live = LiveNames::new(SMALL);
    for port in 0..8 {
        assert_named(
            &live.tcp(0, port, 0, &stream("a.example")),
            port,
            "a.example",
        );
    }
    let changes = live.tcp(0, 8, 0, &stream("b.example"));
    assert_eq!(changes[0], Change::GaveWay(from_port(0, Protocol::Tcp)));
    assert_named(&changes[1..], 8, "b.example");
    // Long names take the room of several short ones.
    let long = format!("{0}.{0}.{0}.{1}", "x".repeat(63), "y".repeat(61));
    for port in 20..30 {
        live.tcp(0, port, 0, &stream(&long));
    }
    let kept = live.kept();
    assert_eq!(kept.len(), 3);
    assert!(
        kept.iter()
            .all(|(port, name)| *port >= 27 && *name == Some(&long))
    );
    // An eviction does not end the flow: it may be named again.
    assert_eq!(live.0.followed(Protocol::Tcp).gave_way, 16);
    // Flows without a name take room, too.
    for port in 40..60 {
        live.tcp(0, port, 0, &[b'?'; 4096]);
    }
    assert_eq!(live.kept().len(), 8);
}

#[test]
fn memory_is_bounded_by_the_settings() {
    let mut live = LiveNames::new(SMALL);
    let long = format!("{0}.{0}.{0}.{1}", "x".repeat(63), "y".repeat(61));
    let (whole, initial) = (stream(&long), datagram(&long, b"12345678"));
    for port in 0..5000 {
        let now_ns = u64::from(port) * 1000;
        let end = if port % 3 == 0 { whole.len() } else { 500 };
        live.tcp(now_ns, port, 0, &whole[..end]);
        live.udp(now_ns, port, &initial);
        let most =
            2 * (SMALL.reader.bytes + SMALL.name_bytes + 16 * 800) + SMALL.first_bytes + (1 << 14);
        assert!(live.0.memory() <= most, "{} of {most}", live.0.memory());
    }
}
