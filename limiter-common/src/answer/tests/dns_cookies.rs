//! The cookies of queries: which queries have one.

extern crate std;

use std::{vec, vec::Vec};

use super::scene::{BOTH, Ip, exchange_of, link, query, udp};
use crate::{
    answer::{InlineLoops, SHORTEST_WITH_COOKIE, find_cookie},
    cookie::{CookieCheck, DnsCookie},
};

/// A question for the root, and a question for `example.com`.
const ROOT: &[u8] = b"\0\0\x02\0\x01";
const NAME: &[u8] = b"\x07example\x03com\0\0\x01\0\x01";

const CONTENT: [u8; 24] = *b"CLIENT\x01\x02\x01\0\0\0TIMEthe_hash";

fn found() -> (CookieCheck, DnsCookie) {
    let cookie = DnsCookie {
        client: u64::from_le_bytes(*b"CLIENT\x01\x02"),
        head: u64::from_le_bytes(*b"\x01\0\0\0TIME"),
        hash: u64::from_le_bytes(*b"the_hash"),
    };
    (CookieCheck::Valid, cookie)
}

fn nothing(check: CookieCheck) -> (CookieCheck, DnsCookie) {
    (check, DnsCookie::default())
}

fn option(code: u16, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap();
    [&code.to_be_bytes()[..], &length.to_be_bytes(), content].concat()
}

fn cookie() -> Vec<u8> {
    option(10, &CONTENT)
}

/// Returns the record with options.
fn record(options: &[u8]) -> Vec<u8> {
    let length = u16::try_from(options.len()).unwrap();
    [
        &b"\0\0\x29\x04\xd0\0\0\x80\0"[..],
        &length.to_be_bytes(),
        options,
    ]
    .concat()
}

/// Returns a query with a question and the bytes behind it.
fn message(question: &[u8], rest: &[u8]) -> Vec<u8> {
    [b"\x12\x34\x01\x20\0\x01\0\0\0\0\0\x01", question, rest].concat()
}

fn find_in(frame: &[u8]) -> (CookieCheck, DnsCookie) {
    let mut cookie = DnsCookie::default();
    let exchange = exchange_of(frame).unwrap();
    let check = find_cookie(&exchange, &InlineLoops, &mut cookie);
    (check, cookie)
}

fn find(message: &[u8]) -> (CookieCheck, DnsCookie) {
    find_in(&udp(Ip::V4, 0, 4321, message))
}

#[test]
fn the_cookie_is_found_wherever_resolvers_put_it() {
    let nsid = option(3, b"");
    let subnet = option(8, b"\0\x01\x18\0\xc6\x33\x64");
    let padding = option(12, &[0; 300]);
    for question in [ROOT, NAME] {
        for options in [
            cookie(),
            [nsid.clone(), subnet.clone(), cookie(), padding.clone()].concat(),
            [padding.clone(), nsid.clone(), cookie()].concat(),
            // The first option counts (RFC 7873, section 5.2).
            [cookie(), option(10, b"another!")].concat(),
        ] {
            for behind in [&b""[..], b"a signature"] {
                let rest = [&record(&options), behind].concat();
                let message = message(question, &rest);
                for family in BOTH {
                    for tags in [0, 2] {
                        let frame = udp(family, tags, 4321, &message);
                        assert_eq!(find_in(&frame), found(), "{options:x?}");
                    }
                }
            }
        }
    }
}

#[test]
fn the_shortest_query_with_a_cookie_is_as_short_as_is_said() {
    let frame = udp(Ip::V4, 0, 4321, &message(ROOT, &record(&cookie())));
    assert_eq!(frame.len() as u64, SHORTEST_WITH_COOKIE);
}

#[test]
fn other_lengths_are_malformed() {
    for length in (0..60).filter(|length| ![8, 24].contains(length)) {
        let message = message(NAME, &record(&option(10, &vec![7; length])));
        assert_eq!(find(&message), nothing(CookieCheck::Malformed), "{length}");
    }
}

#[test]
fn what_is_no_query_with_a_server_cookie_has_none() {
    let good = || message(NAME, &record(&cookie()));
    let changed = |at: usize, to: u8| {
        let mut message = good();
        message[at] = to;
        message
    };
    let end = 12 + NAME.len();
    let many: Vec<u8> = (0..8).flat_map(|_| option(3, b"")).collect();
    for message in [
        message(NAME, b""),
        message(NAME, &record(b"")),
        message(NAME, &record(&option(10, b"CLIENT\x01\x02"))),
        // A response, an update, no and two questions.
        changed(2, 0x81),
        changed(2, 0x29),
        changed(5, 0),
        changed(5, 2),
        // Other records, and no additional one.
        changed(7, 1),
        changed(9, 1),
        changed(11, 0),
        // A compressed name, and a name that leads beyond the packet.
        changed(12, 0xc0),
        changed(12, 63),
        // The record has a name, or is another.
        changed(end, 1),
        changed(end + 2, 40),
        // An option that leads beyond the record, and one too many before the cookie.
        message(
            NAME,
            &record(&[option(3, b""), option(10, &CONTENT)[..20].to_vec()].concat()),
        ),
        message(NAME, &record(&[many, cookie()].concat())),
        b"\x12\x34".to_vec(),
        Vec::new(),
    ] {
        assert_eq!(find(&message), nothing(CookieCheck::Absent), "{message:x?}");
    }
    // The record leads beyond the packet.
    let cut = message(NAME, &record(&cookie())[..20]);
    assert_eq!(find(&cut), nothing(CookieCheck::Absent));
}

#[test]
fn other_packets_have_none() {
    let good = |family| udp(family, 0, 4321, &message(NAME, &record(&cookie())));
    for family in BOTH {
        assert_eq!(find_in(&query(family)), nothing(CookieCheck::Absent));
        let ip = link(family, 0).len();
        // UDP shorter than its packet.
        let udp = ip + if family == Ip::V4 { 20 } else { 40 };
        let mut short = good(family);
        short[udp + 5] -= 1;
        assert_eq!(find_in(&short), nothing(CookieCheck::Absent));
        // Another protocol.
        let mut other = good(family);
        other[ip + if family == Ip::V4 { 9 } else { 6 }] = 6;
        assert_eq!(find_in(&other), nothing(CookieCheck::Absent));
    }
    // A fragment.
    let mut fragment = good(Ip::V4);
    fragment[20] |= 0x20;
    assert_eq!(find_in(&fragment), nothing(CookieCheck::Absent));
}
