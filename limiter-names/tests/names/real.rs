//! Hellos from Chromium, recorded by the test of `limiter names` with real clients: both segments over TCP, the first
//! two datagrams of QUIC.

use limiter_names::{Application, NameSource, Outcome, Protocol, Reader, Segment, Settings};

use super::{assert_named, feed_tcp, flow};

const TLS: &[u8] = include_bytes!("hellos/chromium.tls");
const QUIC: &[u8] = include_bytes!("hellos/chromium.quic");

/// The length of the first segment, and of a datagram.
const SEGMENT: usize = 1448;
const DATAGRAM: usize = 1250;

#[test]
fn a_hello_of_two_segments() {
    let (one, two) = TLS.split_at(SEGMENT);
    for pieces in [[(0, one), (SEGMENT, two)], [(SEGMENT, two), (0, one)]] {
        for is_first_known in [true, false] {
            let mut reader = Reader::new(Settings::default());
            assert!(feed_tcp(&mut reader, is_first_known, [pieces[0]]).is_none());
            let outcome = feed_tcp(&mut reader, is_first_known, [pieces[1]]);
            let Some(Outcome::Name(found)) = outcome else {
                panic!("{outcome:?}");
            };
            assert_eq!(
                (found.name.as_str(), found.how),
                ("chromium.example", NameSource::Tls)
            );
            // Chromium sends bytes that look like ECH even where it hides no name.
            assert!(found.may_be_outer);
            let offered = [Application::Http1, Application::Http2];
            assert!(found.applications.iter().eq(offered));
        }
    }
}

#[test]
fn a_split_at_each_byte() {
    for at in 1..TLS.len() {
        let (one, two) = TLS.split_at(at);
        let mut reader = Reader::new(Settings::default());
        let outcome = feed_tcp(&mut reader, false, [(at, two), (0, one)]);
        assert_named(outcome.as_ref(), "chromium.example");
    }
    let bytes = TLS.chunks(1).enumerate();
    let mut reader = Reader::new(Settings::default());
    let outcome = feed_tcp(&mut reader, true, bytes.rev());
    assert_named(outcome.as_ref(), "chromium.example");
}

#[test]
fn a_hello_of_two_datagrams() {
    let (one, two) = QUIC.split_at(DATAGRAM);
    for datagrams in [[one, two], [two, one]] {
        let mut reader = Reader::new(Settings::default());
        let mut feed = |payload| {
            let segment = Segment::Udp { payload };
            reader.feed(0, flow(Protocol::Udp), segment)
        };
        assert!(feed(datagrams[0]).is_none());
        let outcome = feed(datagrams[1]);
        let Some(Outcome::Name(found)) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(
            (found.name.as_str(), found.how),
            ("quic.example", NameSource::Quic)
        );
        assert!(found.applications.iter().eq([Application::Http3]));
    }
}
