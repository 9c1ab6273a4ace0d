//! Fragments: the stack reassembles them, the limiter sees them one by one.

use anyhow::Result;
use limiter_common::reason::Reason::MalformedTcp;

use crate::{
    build::{
        FRAGMENT, HOP_BY_HOP, NO_NEXT, OPTIONS, PADDING, TCP, UDP, V4, extension, fragment, frame,
    },
    host::{Host, PORT, path},
    oracle::{
        Fate::{self, Delivered, Malformed, Refused},
        Row, assert_table,
    },
};

const SYN: u8 = 2;

/// A piece of a datagram's payload: the next header that its own header names, its offset in bytes,
/// whether more follow, and its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    next: u8,
    offset: u16,
    more: bool,
    bytes: Vec<u8>,
}

fn piece(next: u8, offset: u16, more: bool, bytes: &[u8]) -> Piece {
    Piece {
        next,
        offset,
        more,
        bytes: bytes.to_vec(),
    }
}

/// Cuts a payload into two pieces, each naming another next header.
fn halves(payload: &[u8], at: u16, first: u8, second: u8) -> Vec<Piece> {
    let (one, other) = payload.split_at(at.into());
    vec![piece(first, 0, true, one), piece(second, at, false, other)]
}

fn v4(id: u16, pieces: &[Piece]) -> Vec<Vec<u8>> {
    let frames = pieces.iter().map(|piece| {
        assert!(piece.offset.is_multiple_of(8));
        let packet = V4 {
            id,
            fragment: (u16::from(piece.more) << 13) | (piece.offset / 8),
            ..V4::of(path(true), piece.next)
        };
        frame(&packet.packet(&piece.bytes))
    });
    frames.collect()
}

fn v6(id: u32, pieces: &[Piece]) -> Vec<Vec<u8>> {
    let frames = pieces.iter().map(|piece| {
        let mut payload = fragment(piece.next, piece.offset, piece.more, id);
        payload.extend(&piece.bytes);
        frame(&path(false).packet(FRAGMENT, &payload))
    });
    frames.collect()
}

/// Rows with distinct ids, so that the stack never reassembles pieces of two rows.
struct Rows {
    rows: Vec<Row>,
    id: u16,
}

impl Rows {
    fn v4(&mut self, what: &str, pieces: &[Piece], fate: Fate) -> &mut Row {
        self.id += 1;
        self.rows
            .push(Row::new(format!("IPv4, {what}"), v4(self.id, pieces), fate));
        self.rows.last_mut().expect("just pushed")
    }

    fn add(&mut self, is_v4: bool, what: &str, pieces: &[Piece], fate: Fate) -> &mut Row {
        if is_v4 {
            self.v4(what, pieces, fate)
        } else {
            self.v6(what, pieces, fate)
        }
    }

    fn v6(&mut self, what: &str, pieces: &[Piece], fate: Fate) -> &mut Row {
        self.id += 1;
        self.rows.push(Row::new(
            format!("IPv6, {what}"),
            v6(self.id.into(), pieces),
            fate,
        ));
        self.rows.last_mut().expect("just pushed")
    }
}

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Rows {
        rows: Vec::new(),
        id: 0,
    };
    honest_rows(&mut rows);
    lying_rows(&mut rows);
    tiny_rows(&mut rows);
    overlapping_rows(&mut rows);
    rows.rows
}

fn datagram(v4: bool) -> Vec<u8> {
    path(v4).udp((1, PORT), &[b'x'; 56])
}

fn honest_rows(rows: &mut Rows) {
    for (at, what) in [(32, "two halves"), (8, "the header, and the rest")] {
        rows.v4(what, &halves(&datagram(true), at, UDP, UDP), Delivered);
        rows.v6(what, &halves(&datagram(false), at, UDP, UDP), Delivered);
    }
    let mut reversed = halves(&datagram(true), 32, UDP, UDP);
    reversed.reverse();
    rows.v4("the second half before the first", &reversed, Delivered);
    let mut reversed = halves(&datagram(false), 32, UDP, UDP);
    reversed.reverse();
    rows.v6("the second half before the first", &reversed, Delivered);
    let behind_options = [&extension(UDP, PADDING)[..], &datagram(false)].concat();
    rows.v6(
        "destination options in the first half",
        &halves(&behind_options, 16, OPTIONS, OPTIONS),
        Delivered,
    );
    rows.v6(
        "the first half alone",
        &halves(&datagram(false), 32, UDP, UDP)[..1],
        Refused,
    );
    rows.v6(
        "the second half alone",
        &halves(&datagram(false), 32, UDP, UDP)[1..],
        Refused,
    );
    rows.v4(
        "the second half alone",
        &halves(&datagram(true), 32, UDP, UDP)[1..],
        Refused,
    );
}

/// A later fragment's protocol counts in IPv4, but not in IPv6.
fn lying_rows(rows: &mut Rows) {
    for (what, next) in [
        ("a later fragment that says nothing follows", NO_NEXT),
        ("a later fragment that says it is TCP", TCP),
        (
            "a later fragment that says it is hop-by-hop options",
            HOP_BY_HOP,
        ),
        (
            "a later fragment that says it is destination options",
            OPTIONS,
        ),
        ("a later fragment that says it is a fragment", FRAGMENT),
        ("a later fragment that says it is ICMPv6", 58),
        ("a later fragment that says it is ESP", 50),
    ] {
        rows.v6(what, &halves(&datagram(false), 32, UDP, next), Delivered);
        rows.v4(what, &halves(&datagram(true), 32, UDP, next), Refused);
        let mut reversed = halves(&datagram(false), 32, UDP, next);
        reversed.reverse();
        rows.v6(&format!("first of all {what}"), &reversed, Delivered);
    }
    let behind_options = [&extension(UDP, PADDING)[..], &datagram(false)].concat();
    rows.v6(
        "options behind the first fragment's header, and none behind the later one's",
        &halves(&behind_options, 16, OPTIONS, NO_NEXT),
        Delivered,
    );
}

/// First fragments that end inside their headers.
fn tiny_rows(rows: &mut Rows) {
    let syn = |v4| path(v4).tcp((1, PORT), SYN);
    // The flags are in the second fragment.
    rows.v4(
        "a SYN, cut in the TCP header",
        &halves(&syn(true), 8, TCP, TCP),
        Malformed(MalformedTcp),
    );
    rows.v6(
        "a SYN, cut in the TCP header",
        &halves(&syn(false), 8, TCP, TCP),
        Refused,
    );
    rows.v4(
        "a SYN, cut behind the flags",
        &halves(&syn(true), 16, TCP, TCP),
        Malformed(MalformedTcp),
    );
    let long = |v4| [syn(v4), vec![0; 12]].concat();
    // IPv4 discards bytes beyond units of eight, here the header's last four bytes.
    let mut pieces = halves(&long(true), 24, TCP, TCP);
    pieces[0].bytes.truncate(20);
    pieces[1] = piece(TCP, 16, false, &long(true)[16..]);
    rows.v4("a SYN, in a first fragment of 20 bytes", &pieces, Delivered);
    rows.v4(
        "a SYN, whole in the first fragment",
        &halves(&long(true), 24, TCP, TCP),
        Delivered,
    );
    rows.v6(
        "a SYN, whole in the first fragment",
        &halves(&long(false), 24, TCP, TCP),
        Delivered,
    );
    let options = [&extension(TCP, PADDING)[..], &syn(false)].concat();
    rows.v6(
        "nothing but options in the first fragment",
        &halves(&options, 8, OPTIONS, OPTIONS),
        Refused,
    );
    let long_options = [&[UDP, 1, 1, 12], &[0; 12][..], &datagram(false)].concat();
    rows.v6(
        "options cut in the middle",
        &halves(&long_options, 8, OPTIONS, OPTIONS),
        Refused,
    );
}

/// When two fragments overlap, the stack keeps the first one, or neither.
fn overlapping_rows(rows: &mut Rows) {
    for is_v4 in [true, false] {
        let datagram = datagram(is_v4);
        let other_ports = path(is_v4).udp((1, PORT + 1), &[b'x'; 56]);
        let [first, second] = <[_; 2]>::try_from(halves(&datagram, 32, UDP, UDP)).expect("two");
        let shorter = piece(UDP, 0, true, &other_ports[..24]);
        let pieces = [first.clone(), shorter, second.clone()];
        rows.add(
            is_v4,
            "other ports from a shorter first fragment",
            &pieces,
            Delivered,
        )
        .set_decoy(1);
        rows.add(
            is_v4,
            "the first fragment twice",
            &[first.clone(), first.clone(), second.clone()],
            Delivered,
        );
        let larger = piece(UDP, 0, true, &other_ports[..40]);
        rows.add(
            is_v4,
            "other ports from a longer first fragment",
            &[first.clone(), larger, second.clone()],
            Refused,
        );
        let into = piece(UDP, 24, false, &datagram[24..]);
        rows.add(
            is_v4,
            "a second fragment that reaches into the first",
            &[first.clone(), into, second.clone()],
            Refused,
        );
    }
}

#[test]
fn whatever_the_fragments() -> Result<()> {
    assert_table(&mut Host::new()?, &rows())
}
