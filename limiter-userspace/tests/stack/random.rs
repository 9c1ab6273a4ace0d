//! Random packets: behind tags, with headers of all kinds, and in contradictory fragments.

use std::env;

use anyhow::{Context as _, Result};
use proptest::{
    collection::vec, option, prelude::*, sample::Index, strategy::ValueTree as _,
    test_runner::TestRunner,
};

use crate::{
    build::{
        AUTHENTICATION, FRAGMENT, HOP_BY_HOP, NO_NEXT, OPTIONS, PADDING, ROUTING, TCP, Tag, UDP,
        V4, extension, fragment, tagged,
    },
    host::{Host, PORT, path},
    oracle::{assert_judged, is_dropped},
};

/// The environment variable for the number of packets in a run.
const PACKETS: &str = "LIMITER_STACK_PACKETS";
const DEFAULT_PACKETS: u16 = 4_000;

#[derive(Clone, Debug)]
struct Case {
    tags: Vec<Tag>,
    v4: bool,
    /// The kinds of extension headers; IPv4 has none.
    headers: Vec<u8>,
    content: Content,
    pieces: Option<Pieces>,
    /// A byte to change, if the packet is not cut into pieces.
    spoilt: Option<(Index, u8)>,
}

#[derive(Clone, Copy, Debug)]
enum Content {
    Udp,
    Tcp(u8),
    Protocol(u8),
}

/// How a packet is cut into fragments.
#[derive(Clone, Debug)]
struct Pieces {
    /// In units of eight bytes.
    cuts: Vec<u16>,
    /// The next header that later pieces of IPv6 name.
    next: u8,
    /// Whether later pieces carry destination options before the fragment header.
    options: bool,
    /// By how many units each later piece overlaps the previous one.
    overlap: u16,
    /// Whether the last piece comes first.
    reversed: bool,
}

fn case() -> impl Strategy<Value = Case> {
    let kind = prop_oneof![5 => Just(0x8100), 5 => Just(0x88a8), 1 => Just(0x9100)];
    let vid = prop_oneof![12 => Just(0), 1 => Just(9), 1 => any::<u16>()];
    let tags =
        prop_oneof![2 => vec((kind.clone(), vid.clone()), 0..2), 1 => vec((kind, vid), 0..11)];
    let header = prop_oneof![
        1 => Just(HOP_BY_HOP),
        3 => Just(OPTIONS),
        2 => Just(ROUTING),
        1 => Just(FRAGMENT),
        1 => Just(AUTHENTICATION),
        1 => Just(NO_NEXT),
    ];
    let content = prop_oneof![
        3 => Just(Content::Udp),
        3 => any::<u8>().prop_map(Content::Tcp),
        1 => any::<u8>().prop_map(Content::Protocol),
    ];
    let next = prop_oneof![
        Just(UDP),
        Just(NO_NEXT),
        Just(TCP),
        Just(OPTIONS),
        any::<u8>()
    ];
    let overlap = prop_oneof![6 => Just(0), 1 => 1..3u16];
    let pieces = (
        vec(1..12u16, 1..3),
        next,
        any::<bool>(),
        overlap,
        any::<bool>(),
    )
        .prop_map(|(cuts, next, options, overlap, reversed)| Pieces {
            cuts,
            next,
            options,
            overlap,
            reversed,
        });
    (
        tags,
        any::<bool>(),
        prop_oneof![2 => Just(Vec::new()), 2 => vec(header.clone(), 1..3), 1 => vec(header, 1..11)],
        content,
        option::weighted(0.4, pieces),
        option::weighted(0.4, (any::<Index>(), any::<u8>())),
    )
        .prop_map(|(tags, v4, headers, content, pieces, spoilt)| Case {
            tags,
            v4,
            headers,
            content,
            pieces,
            spoilt,
        })
}

impl Case {
    /// Builds the packet's frames, with `id` for its fragments.
    fn frames(&self, id: u16) -> Vec<Vec<u8>> {
        let (protocol, payload) = self.payload();
        let Some(pieces) = &self.pieces else {
            let mut frame = tagged(&self.tags, &path(self.v4).packet(protocol, &payload));
            if let Some((position, value)) = self.spoilt {
                let headers = frame.len().min(150);
                frame[position.index(headers)] = value;
            }
            return vec![frame];
        };
        let mut frames = self.cut(pieces, id, protocol, &payload);
        if pieces.reversed {
            frames.reverse();
        }
        frames
    }

    /// Returns the protocol behind the IP header, and the payload.
    fn payload(&self) -> (u8, Vec<u8>) {
        let path = path(self.v4);
        let (mut next, mut payload) = match self.content {
            Content::Udp => (UDP, path.udp((1, PORT), &[b'x'; 64])),
            Content::Tcp(flags) => (TCP, [path.tcp((1, PORT), flags), vec![0; 44]].concat()),
            Content::Protocol(number) => (number, vec![0; 64]),
        };
        if !self.v4 {
            for kind in self.headers.iter().rev() {
                let body = match *kind {
                    // A routing header at its end, of an unknown type.
                    ROUTING => [253, 0, 0, 0, 0, 0],
                    FRAGMENT => [0; 6],
                    _ => PADDING,
                };
                payload.splice(0..0, extension(next, body));
                next = *kind;
            }
        }
        (next, payload)
    }

    fn cut(&self, pieces: &Pieces, id: u16, protocol: u8, payload: &[u8]) -> Vec<Vec<u8>> {
        let end = u16::try_from(payload.len()).expect("short");
        let mut frames = Vec::new();
        let mut start = 0u16;
        for cut in pieces.cuts.iter().copied().chain([u16::MAX]) {
            let stop = start.saturating_add(cut.saturating_mul(8)).min(end);
            if start >= stop {
                break;
            }
            let begins = start.saturating_sub(pieces.overlap * 8);
            let bytes = &payload[begins.into()..stop.into()];
            let more = stop < end;
            let packet = if self.v4 {
                let header = V4 {
                    id,
                    fragment: (u16::from(more) << 13) | (begins / 8),
                    ..V4::of(path(true), protocol)
                };
                header.packet(bytes)
            } else {
                // There is only one first piece: the stack may discard a second one that differs.
                let later = begins > 0;
                let next = if later { pieces.next } else { protocol };
                let mut piece = fragment(next, begins, more, id.into());
                piece.extend(bytes);
                let mut first = FRAGMENT;
                if later && pieces.options {
                    piece.splice(0..0, extension(FRAGMENT, PADDING));
                    first = OPTIONS;
                }
                path(false).packet(first, &piece)
            };
            frames.push(tagged(&self.tags, &packet));
            start = stop;
        }
        frames
    }
}

/// Builds random packets, except frames that the limiter drops from any source.
pub(crate) fn packets(count: u16) -> impl Iterator<Item = Vec<Vec<u8>>> {
    let mut runner = TestRunner::default();
    let cases = case();
    (0..count).map(move |id| {
        let case = cases
            .new_tree(&mut runner)
            .expect("the strategy rejects nothing")
            .current();
        let mut frames = case.frames(id);
        frames.retain(|frame| !is_dropped(frame));
        frames
    })
}

#[test]
fn random_packets() -> Result<()> {
    let count = match env::var(PACKETS) {
        Ok(number) => number.parse().context(PACKETS)?,
        Err(_) => DEFAULT_PACKETS,
    };
    let mut host = Host::new()?;
    let (mut delivered, mut in_pieces) = (0, 0);
    for frames in packets(count) {
        let deliveries = host.send(&frames)?;
        if let Err(problem) = assert_judged(&frames, &deliveries) {
            panic!("{problem}\n{frames:02x?}");
        }
        delivered += u64::from(!deliveries.is_empty());
        in_pieces += u64::from(!deliveries.is_empty() && frames.len() > 1);
    }
    println!("{delivered} of {count} packets delivered, {in_pieces} of them in pieces");
    // Without deliveries the test would prove nothing.
    assert!(delivered > u64::from(count) / 5 && in_pieces > u64::from(count) / 20);
    Ok(())
}
