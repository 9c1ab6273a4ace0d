//! QUIC: Initial packets as browsers send them, and as attackers do.

use limiter_names::{
    NameSource, NoName, Outcome, Protocol, Reader, Segment, Settings,
    testing::{Hello, Initial, Version, crypto},
};

use super::{NAME, assert_named, assert_unnamed, flow};

const CONNECTION: &[u8] = &[0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];

/// The length of datagrams.
const LENGTH: usize = 1250;

fn message() -> Vec<u8> {
    let hello = Hello {
        name: Some(NAME.as_bytes()),
        applications: &[b"h3"],
        key_share: 1200,
        is_encrypted: false,
        ..Hello::NONE
    };
    hello.message()
}

fn initial(version: Version, number: u32) -> Initial<'static> {
    Initial {
        version,
        keyed_by: CONNECTION,
        connection: CONNECTION,
        token: &[],
        number,
    }
}

fn feed(reader: &mut Reader, payload: &[u8]) -> Option<Outcome> {
    reader.feed(0, flow(Protocol::Udp), Segment::Udp { payload })
}

fn reader() -> Reader {
    Reader::new(Settings::default())
}

/// The frames of a hello in parts, out of order and with other frames between.
fn chaotic(message: &[u8], random: &mut fastrand::Rng) -> Vec<Vec<u8>> {
    let mut parts: Vec<Vec<u8>> = Vec::new();
    let mut from = 0;
    while from < message.len() {
        let to = (from + random.usize(1..300)).min(message.len());
        parts.push(crypto(from, &message[from..to]));
        from = to;
    }
    parts.extend((0..10).map(|_| vec![1]));
    parts.extend((0..10).map(|_| vec![0; random.usize(1..5)]));
    random.shuffle(&mut parts);
    let half = parts.len() / 2;
    let mut datagrams = vec![Vec::new(), Vec::new(), Vec::new()];
    for (index, part) in parts.into_iter().enumerate() {
        let mut at = usize::from(index > half);
        if datagrams[at].len() + part.len() > 1100 {
            at = 2;
        }
        datagrams[at].extend(part);
    }
    datagrams
}

#[test]
fn a_hello_in_parts_over_datagrams_in_any_order() {
    let mut random = fastrand::Rng::with_seed(9001);
    for version in [Version::One, Version::Two] {
        for _ in 0..200 {
            let mut datagrams = Vec::new();
            for (frames, number) in chaotic(&message(), &mut random).iter().zip(0..) {
                datagrams.push(initial(version, number).sealed(frames, LENGTH));
            }
            random.shuffle(&mut datagrams);
            let mut reader = reader();
            let outcome = datagrams.iter().find_map(|one| feed(&mut reader, one));
            let Some(Outcome::Name(found)) = outcome else {
                panic!("{outcome:?}");
            };
            assert_eq!((found.name.as_str(), found.how), (NAME, NameSource::Quic));
            assert_eq!(reader.half_there(), 0);
        }
    }
}

#[test]
fn packets_of_one_datagram() {
    let message = message();
    let (one, two) = message.split_at(500);
    let coalesced = [
        initial(Version::One, 0).sealed(&crypto(0, one), 700),
        initial(Version::One, 1).sealed(&crypto(500, two), 1000),
    ];
    assert_named(feed(&mut reader(), &coalesced.concat()).as_ref(), NAME);
    // Any bytes may follow; and packets of another connection are left out.
    let garbage = [coalesced.concat(), vec![0x40; 30]].concat();
    assert_named(feed(&mut reader(), &garbage).as_ref(), NAME);
    let other = Initial {
        keyed_by: b"other",
        connection: b"other",
        ..initial(Version::One, 1)
    };
    let of_two = [coalesced[0].clone(), other.sealed(&crypto(500, two), 1000)];
    let mut reader = reader();
    assert!(feed(&mut reader, &of_two.concat()).is_none());
    // 0-RTT before the hello's end.
    let early = [
        &[0xd0, 0, 0, 0, 1, 8][..],
        CONNECTION,
        &[0, 0x44, 0],
        &[7; 1024],
    ]
    .concat();
    assert!(feed(&mut reader, &early).is_none());
    let end = initial(Version::One, 1).sealed(&crypto(500, two), LENGTH);
    assert_named(feed(&mut reader, &end).as_ref(), NAME);
}

/// After the server's Retry the client starts again, under the connection ID that the server chose.
#[test]
fn a_retry_changes_the_key() {
    let message = message();
    let (one, two) = message.split_at(700);
    let mut reader = reader();
    let first = initial(Version::One, 0).sealed(&crypto(0, one), LENGTH);
    assert!(feed(&mut reader, &first).is_none());
    let retried = Initial {
        keyed_by: b"chosen by the server",
        connection: b"chosen by the server",
        token: &[0xaa; 90],
        ..initial(Version::One, 2)
    };
    // The end alone is not enough: bytes under the old key do not count.
    assert!(feed(&mut reader, &retried.sealed(&crypto(700, two), LENGTH)).is_none());
    let begin = Initial {
        number: 3,
        ..retried
    };
    let outcome = feed(&mut reader, &begin.sealed(&crypto(0, one), LENGTH));
    assert_named(outcome.as_ref(), NAME);
}

/// After the server's first packet the client uses the server's connection ID, under the old key.
#[test]
fn the_servers_number_does_not_change_the_key() {
    let message = message();
    let (one, two) = message.split_at(700);
    let mut reader = reader();
    assert!(
        feed(
            &mut reader,
            &initial(Version::Two, 0).sealed(&crypto(0, one), LENGTH)
        )
        .is_none()
    );
    let later = Initial {
        connection: b"server",
        ..initial(Version::Two, 1)
    };
    let outcome = feed(&mut reader, &later.sealed(&crypto(700, two), LENGTH));
    assert_named(outcome.as_ref(), NAME);
}

#[test]
fn what_cannot_be_opened_ends_nothing_that_has_begun() {
    let message = message();
    let (one, two) = message.split_at(700);
    let first = initial(Version::One, 0).sealed(&crypto(0, one), LENGTH);
    let mut spoilt = first.clone();
    spoilt[700] ^= 1;
    assert_unnamed(feed(&mut reader(), &spoilt).as_ref(), NoName::Undecryptable);
    let mut reader = reader();
    assert!(feed(&mut reader, &first).is_none());
    for forged in [
        &spoilt[..],
        b"garbage",
        &[0xc0; 1200],
        &first[..1199],
        &[0xc0],
    ] {
        assert!(feed(&mut reader, forged).is_none());
    }
    let outcome = feed(
        &mut reader,
        &initial(Version::One, 1).sealed(&crypto(700, two), LENGTH),
    );
    assert_named(outcome.as_ref(), NAME);
}

#[test]
fn what_is_no_quic_says_why() {
    let of = |payload: &[u8]| feed(&mut reader(), payload);
    // A DNS query, and a later packet of QUIC.
    let question = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x00\x00\x01\x00\x01";
    assert_unnamed(of(question).as_ref(), NoName::Foreign);
    assert_unnamed(of(&[0x40; 1250]).as_ref(), NoName::Foreign);
    let packet = initial(Version::One, 0).sealed(&crypto(0, &message()[..100]), LENGTH);
    let mut other = packet.clone();
    other[1..5].copy_from_slice(&0x1a2a_3a4a_u32.to_be_bytes());
    assert_unnamed(of(&other).as_ref(), NoName::Version);
    other[1..5].fill(0);
    assert_unnamed(of(&other).as_ref(), NoName::Foreign);
    // Servers drop an Initial packet in a shorter datagram.
    let short = initial(Version::One, 0).sealed(&crypto(0, &message()[..100]), 1199);
    assert_unnamed(of(&short).as_ref(), NoName::Malformed);
    // Frames that clients may not send there, and a damaged hello; a hello that is too long may still show its name.
    let of_frames = |frames: &[u8]| of(&initial(Version::Two, 0).sealed(frames, LENGTH));
    assert_unnamed(of_frames(&[8, 0, 0]).as_ref(), NoName::Malformed);
    assert!(of_frames(&crypto(0, &[1, 0, 0xff, 0])).is_none());
    assert_unnamed(
        of_frames(&crypto(0, &[2, 0, 0, 0])).as_ref(),
        NoName::Malformed,
    );
}
