//! Good frames, fragments, and an attacker's variations of them.

use std::net::IpAddr;

use limiter_policy::policy::DnsCookies;
use proptest::{prelude::*, sample::Index};
use testbed::{Frame, Tag};

use super::{address, cookie_query, port, question, secret};

#[derive(Clone, Debug)]
enum Content {
    Udp,
    Query,
    /// A message with a question, to the port of DNS.
    Question(Vec<u8>),
    /// A cookie made with the secret of that number.
    CookieQuery(u8),
    Tcp {
        flags: u8,
    },
    Syn {
        options: &'static [u8],
    },
    /// A message of ICMP.
    Message {
        message_type: u8,
        hop_limit: u8,
    },
    Protocol(u8),
}

/// A DNS query of `example.com` for its address.
pub(crate) const QUERY: &[u8] = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x07example\x03com\0\0\x01\0\x01";

/// The options of a SYN: from Linux, from other systems, and some broken.
const OPTIONS: [&[u8]; 5] = [
    b"\x02\x04\x05\xb4\x04\x02\x08\x0a\0\0\0\x4d\0\0\0\0\x01\x03\x03\x07",
    b"\x02\x04\x05\xb4\x01\x03\x03\x06\x01\x01\x08\x0a\xff\xff\xff\xff\0\0\0\0\x04\x02\0\0",
    b"\x02\x04\x05\xb4\x01\x03\x03\x08\x01\x01\x04\x02",
    b"\x01\x01\x08\x0a\0\0\0\x01\0\0\0\0",
    b"\x04\x02\x08\x0a\0\0\0\x01\0\0\0\0\x03\x09\0\0",
];

/// A good frame; some are then spoilt or cut.
pub(crate) fn frame() -> impl Strategy<Value = Vec<u8>> {
    let spoilt = prop::option::weighted(0.2, (any::<Index>(), any::<u8>()));
    let cut = prop::option::weighted(0.1, any::<Index>());
    (good(), spoilt, cut).prop_map(|(mut frame, spoilt, cut)| {
        if let Some((position, value)) = spoilt {
            let headers = frame.len().min(90);
            frame[position.index(headers)] = value;
        }
        if let Some(position) = cut {
            // The kernel passes no program less than an Ethernet header.
            frame.truncate(14 + position.index(frame.len() - 13));
        }
        frame
    })
}

/// A type of ICMP or ICMPv6: a ping, an error, neighbour discovery or any other.
pub(super) fn message_type() -> impl Strategy<Value = u8> {
    prop_oneof![
        2 => prop::sample::select(vec![8, 128]),
        1 => prop::sample::select(vec![1, 3]),
        2 => 132u8..139,
        1 => any::<u8>(),
    ]
}

fn good() -> impl Strategy<Value = Vec<u8>> {
    let content = prop_oneof![
        1 => Just(Content::Udp),
        1 => Just(Content::Query),
        1 => question::message().prop_map(Content::Question),
        1 => (1u8..3).prop_map(Content::CookieQuery),
        1 => prop_oneof![Just(0x02), Just(0x12), Just(0x10), any::<u8>()]
            .prop_map(|flags| Content::Tcp { flags }),
        // Few policies answer them, and few of these policies refuse any.
        3 => prop::sample::select(OPTIONS.to_vec()).prop_map(|options| Content::Syn { options }),
        2 => (message_type(), prop_oneof![Just(255), any::<u8>()]).prop_map(
            |(message_type, hop_limit)| Content::Message { message_type, hop_limit }
        ),
        1 => prop_oneof![Just(132), Just(33), Just(136), any::<u8>()].prop_map(Content::Protocol),
    ];
    // A fragment's offset, and the false next header of a later IPv6 fragment.
    let offset = prop_oneof![Just(0u16), 1u16..0x2000];
    let lie = prop::option::of(prop_oneof![Just(59), any::<u8>()]);
    let fragment = prop::option::weighted(0.2, (offset, lie));
    let tags = prop_oneof![6 => 0usize..3, 1 => 3usize..11];
    let addresses = (address(), address()).prop_filter_map("one family", |(source, other)| {
        (source.is_ipv4() == other.is_ipv4()).then_some((source, other))
    });
    (
        addresses,
        content,
        (port(), port()),
        tags,
        0usize..600,
        fragment,
    )
        .prop_map(
            |((source, destination), content, ports, tags, payload, fragment)| {
                let mut frame = Frame::new(source, destination);
                for _ in 0..tags {
                    frame = frame.tagged(Tag::Customer(5));
                }
                let ip = 14 + 4 * tags;
                let mut bytes = build(&frame, source, ip, content, ports, payload);
                if let Some((offset, lie)) = fragment {
                    make_fragment(&mut bytes, ip, source, offset, lie);
                }
                bytes
            },
        )
}

/// Builds the frame of a client, with the IP header at `ip`.
fn build(
    frame: &Frame,
    client: IpAddr,
    ip: usize,
    content: Content,
    (source, destination): (u16, u16),
    payload: usize,
) -> Vec<u8> {
    let payload = vec![0; payload];
    match content {
        Content::Udp => frame.udp(source, destination, &payload),
        Content::Query => frame.udp(source, destination, QUERY),
        Content::Question(message) => frame.udp(source, DnsCookies::DEFAULT_PORT, &message),
        Content::CookieQuery(number) => {
            let query = cookie_query(client, &secret(number), 0);
            frame.udp(source, DnsCookies::DEFAULT_PORT, &query)
        }
        Content::Tcp { flags } => frame.tcp_syn(source, destination, 0).map(|mut bytes| {
            let header = bytes.len() - 20;
            bytes[header + 13] = flags;
            bytes
        }),
        Content::Syn { options } => frame.tcp_syn_with(source, destination, 7, options),
        Content::Message {
            message_type,
            hop_limit,
        } => frame.echo(&payload).map(|mut bytes| {
            let header = bytes.len() - payload.len() - 8;
            bytes[header] = message_type;
            let hops = if bytes[ip] >> 4 == 4 { 8 } else { 7 };
            bytes[ip + hops] = hop_limit;
            bytes
        }),
        Content::Protocol(number) => frame.udp(source, destination, &payload).map(|mut bytes| {
            let protocol = if bytes[ip] >> 4 == 4 { 9 } else { 6 };
            bytes[ip + protocol] = number;
            bytes
        }),
    }
    .expect("a frame of one family")
}

/// Turns the datagram into one of its fragments; `offset` is in units of eight bytes. A later IPv6
/// fragment may lie about its protocol.
fn make_fragment(bytes: &mut Vec<u8>, ip: usize, source: IpAddr, offset: u16, lie: Option<u8>) {
    const MORE: u16 = 1;
    match source {
        IpAddr::V4(_) => {
            let field = MORE << 13 | offset;
            bytes[ip + 6..ip + 8].copy_from_slice(&field.to_be_bytes());
        }
        IpAddr::V6(_) => {
            let [high, low] = (offset << 3 | MORE).to_be_bytes();
            let protocol = std::mem::replace(&mut bytes[ip + 6], 44);
            let next = lie.filter(|_| offset > 0).unwrap_or(protocol);
            let header = [next, 0, high, low, 0, 0, 0, 7];
            bytes.splice(ip + 40..ip + 40, header);
            let length = u16::from_be_bytes([bytes[ip + 4], bytes[ip + 5]]) + 8;
            bytes[ip + 4..ip + 6].copy_from_slice(&length.to_be_bytes());
        }
    }
}
