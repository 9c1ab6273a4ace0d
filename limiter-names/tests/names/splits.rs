//! The outcome is the same for any split of a stream, and for any order of its pieces.

use limiter_names::{
    NoName, Reader, Settings,
    testing::{Hello, records},
};

use super::{NAME, assert_named, assert_unnamed, feed_tcp};

/// Streams that name the server: TLS in one record and in many, both kinds of HTTP.
fn streams() -> Vec<Vec<u8>> {
    let hello = Hello {
        name: Some(NAME.as_bytes()),
        applications: &[b"h2"],
        key_share: 1200,
        is_encrypted: true,
        ..Hello::NONE
    };
    let request = format!("GET / HTTP/1.1\r\nAccept: */*\r\nHost: {NAME}\r\n\r\n");
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let headers = [0, 0, 20, 1, 4, 0, 0, 0, 1, 0x82, 0x86, 0x84, 0x41, 15];
    vec![
        records(&hello.message(), 1 << 14),
        records(&hello.message(), 500),
        request.into_bytes(),
        [&preface[..], &settings, &headers, NAME.as_bytes(), &[0x84]].concat(),
    ]
}

#[test]
fn a_split_at_each_byte() {
    for stream in streams() {
        for is_first_known in [true, false] {
            for at in 1..stream.len() {
                let (one, two) = stream.split_at(at);
                for pieces in [[(0, one), (at, two)], [(at, two), (0, one)]] {
                    let mut reader = Reader::new(Settings::default());
                    let outcome = feed_tcp(&mut reader, is_first_known, pieces);
                    assert_named(outcome.as_ref(), NAME);
                    assert_eq!(reader.half_there(), 0);
                }
            }
        }
    }
}

#[test]
fn a_split_at_every_byte() {
    for stream in streams() {
        let pieces = || stream.chunks(1).enumerate();
        for is_first_known in [true, false] {
            let mut reader = Reader::new(Settings::default());
            assert_named(
                feed_tcp(&mut reader, is_first_known, pieces()).as_ref(),
                NAME,
            );
            assert_named(
                feed_tcp(&mut reader, is_first_known, pieces().rev()).as_ref(),
                NAME,
            );
        }
    }
}

#[test]
fn shuffled_pieces_that_overlap_and_come_again() {
    let mut random = fastrand::Rng::with_seed(20);
    for stream in streams() {
        for round in 0..400 {
            let most = random.usize(1..200);
            let mut pieces: Vec<(usize, &[u8])> = Vec::new();
            let mut from = 0;
            while from < stream.len() {
                let to = (from + random.usize(1..=most)).min(stream.len());
                let overlap = from.saturating_sub(random.usize(..=most));
                pieces.push((overlap, &stream[overlap..to]));
                if random.bool() {
                    pieces.push((from, &stream[from..to]));
                }
                from = to;
            }
            random.shuffle(&mut pieces);
            let mut reader = Reader::new(Settings::default());
            let outcome = feed_tcp(&mut reader, round % 2 == 0, pieces);
            assert_named(outcome.as_ref(), NAME);
        }
    }
}

/// The middle of a stream is not taken for its beginning, even if its position is unknown.
#[test]
fn a_flow_seen_from_its_middle_on() {
    let middle = vec![0xa5; 5000];
    let pieces = || {
        middle
            .chunks(1000)
            .enumerate()
            .map(|(at, piece)| (at * 1000, piece))
    };
    let mut reader = Reader::new(Settings::default());
    let outcome = feed_tcp(&mut reader, false, pieces());
    assert_unnamed(outcome.as_ref(), NoName::NoBeginning);
    let outcome = feed_tcp(&mut reader, true, pieces());
    assert_unnamed(outcome.as_ref(), NoName::Foreign);
    assert!(feed_tcp(&mut reader, false, pieces().take(2)).is_none());
    let flow = super::flow(limiter_names::Protocol::Tcp);
    assert_eq!(reader.give_up(&flow), Some(NoName::NoBeginning));
    assert_eq!(reader.give_up(&flow), None);
}
