//! IP headers, extension headers and options: everything between the ethertype and the payload.

use std::net::IpAddr;

use anyhow::Result;
use limiter_common::reason::Reason::{MalformedIpv6, MalformedTcp, MalformedUdp};

use crate::{
    build::{
        FRAGMENT, HOP_BY_HOP, IPV6, NO_NEXT, OPTIONS, PADDING, ROUTING, TCP, UDP, V4, ethernet,
        extension, frame,
    },
    host::{Host, PORT, path},
    oracle::{
        Fate::{self, Delivered, DependsOnKernel, Malformed, Refused},
        Row, assert_table,
    },
};

const SYN: u8 = 2;

/// The offset of the IP header in an untagged frame.
const IP: usize = 14;

fn udp(v4: bool) -> Vec<u8> {
    path(v4).udp((1, PORT), b"hello")
}

fn changed(mut frame: Vec<u8>, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    change(&mut frame);
    frame
}

/// Builds an IPv6 packet with extension headers; the last one names the payload.
fn v6(first: u8, headers: &[u8], payload: &[u8]) -> Vec<u8> {
    frame(&path(false).packet(first, &[headers, payload].concat()))
}

/// Builds UDP behind extension headers of these kinds.
fn chain(kinds: &[(u8, [u8; 6])]) -> Vec<u8> {
    let mut next = UDP;
    let mut headers = Vec::new();
    for (kind, body) in kinds.iter().rev() {
        headers.splice(0..0, extension(next, *body));
        next = *kind;
    }
    v6(next, &headers, &udp(false))
}

pub(crate) fn rows() -> Vec<Row> {
    [ipv4_rows(), ipv6_rows(), extension_rows(), length_rows()].concat()
}

fn ipv4_rows() -> Vec<Row> {
    let with_options = |options: &[u8]| {
        let packet = V4 {
            options: options.to_vec(),
            ..V4::of(path(true), UDP)
        };
        frame(&packet.packet(&udp(true)))
    };
    let route = |kind: u8, to: [u8; 4], pointer: u8| {
        with_options(&[kind, 7, pointer, to[0], to[1], to[2], to[3], 0])
    };
    let syn = path(true).packet(TCP, &path(true).tcp((1, PORT), SYN));
    let whole = path(true).packet(UDP, &udp(true));
    vec![
        Row::one("a SYN", frame(&syn), Delivered),
        Row::one("no-operation options", with_options(&[1; 8]), Delivered),
        Row::one(
            "as many options as there may be",
            with_options(&[1; 40]),
            Delivered,
        ),
        Row::one("a router alert", with_options(&[148, 4, 0, 0]), Delivered),
        Row::one(
            "a recorded route",
            with_options(&[7, 7, 4, 0, 0, 0, 0, 0]),
            Delivered,
        ),
        // A plain host has accept_source_route off; a source route changes the destination.
        Row::one(
            "a loose source route",
            route(131, [10, 77, 0, 1], 4),
            Refused,
        ),
        Row::one(
            "a strict source route",
            route(137, [10, 77, 0, 1], 4),
            Refused,
        ),
        Row::one(
            "a source route at its end",
            route(131, [10, 77, 0, 1], 8),
            Refused,
        ),
        Row::one(
            "a bad header checksum",
            changed(frame(&whole), |frame| frame[IP + 10] ^= 1),
            Refused,
        ),
        Row::one(
            "a bad UDP checksum",
            changed(frame(&whole), |frame| frame[IP + 26] ^= 1),
            // Raw sockets ignore the option.
            Delivered,
        ),
        Row::one(
            "the reserved flag",
            frame(
                &V4 {
                    fragment: 0x8000,
                    ..V4::of(path(true), UDP)
                }
                .packet(&udp(true)),
            ),
            Delivered,
        ),
        Row::one(
            "IPv4 from a broadcast address",
            frame(
                &V4 {
                    source: [255; 4].into(),
                    ..V4::of(path(true), UDP)
                }
                .packet(&udp(true)),
            ),
            Refused,
        ),
        Row::one(
            "padding",
            changed(frame(&whole), |frame| frame.resize(200, 0xff)),
            Delivered,
        ),
        Row::one(
            "nothing behind the header",
            frame(&path(true).packet(UDP, &[])),
            Malformed(MalformedUdp),
        ),
    ]
}

fn ipv6_rows() -> Vec<Row> {
    let syn = path(false).packet(TCP, &path(false).tcp((1, PORT), SYN));
    let from = |source: &str| {
        let path = crate::build::Path {
            source: source.parse::<IpAddr>().expect("an address"),
            ..path(false)
        };
        frame(&path.packet(UDP, &path.udp((1, PORT), b"hello")))
    };
    vec![
        Row::one("a SYN over IPv6", frame(&syn), Delivered),
        Row::one(
            "IPv6 with padding",
            changed(v6(UDP, &[], &udp(false)), |f| f.resize(200, 0xff)),
            Delivered,
        ),
        // A socket would take the source for IPv4's 10.77.0.2.
        Row::one(
            "from an IPv4-mapped address",
            from("::ffff:10.77.0.2"),
            Malformed(MalformedIpv6),
        ),
        Row::one(
            "from an IPv4-compatible address",
            from("::10.77.0.2"),
            Delivered,
        ),
        Row::one(
            "from an IPv4-translated address",
            from("::ffff:0:10.77.0.2"),
            Delivered,
        ),
        Row::one("from NAT64's prefix", from("64:ff9b::10.77.0.2"), Delivered),
        Row::one("from 6to4's prefix", from("2002:a4d:2::1"), Delivered),
        Row::one("from a multicast address", from("ff02::1"), Refused),
        Row::one("from the loopback address", from("::1"), Refused),
    ]
}

fn extension_rows() -> Vec<Row> {
    let one = |what: &str, kind: u8, body: [u8; 6], fate: Fate| {
        Row::one(what, chain(&[(kind, body)]), fate)
    };
    let atomic = [0, 0, 0, 0, 0, 7];
    let options = |count: usize| chain(&vec![(OPTIONS, PADDING); count]);
    let routing = |kind: u8, left: u8| [kind, left, 0, 0, 0, 0];
    let mut rows = vec![
        one("hop-by-hop options", HOP_BY_HOP, PADDING, Delivered),
        one("destination options", OPTIONS, PADDING, Delivered),
        one("an atomic fragment", FRAGMENT, atomic, Delivered),
        Row::one("eight destination options", options(8), Delivered),
        Row::one(
            "nine destination options",
            options(9),
            Malformed(MalformedIpv6),
        ),
        Row::one(
            "hop-by-hop options, destination options, routing, atomic fragment, destination options",
            chain(&[
                (HOP_BY_HOP, PADDING),
                (OPTIONS, PADDING),
                (ROUTING, routing(0, 0)),
                (FRAGMENT, atomic),
                (OPTIONS, PADDING),
            ]),
            Delivered,
        ),
        Row::one(
            "hop-by-hop options in the second position",
            chain(&[(OPTIONS, PADDING), (HOP_BY_HOP, PADDING)]),
            Refused,
        ),
        Row::one(
            "hop-by-hop options twice",
            chain(&[(HOP_BY_HOP, PADDING), (HOP_BY_HOP, PADDING)]),
            Refused,
        ),
        Row::one(
            "two atomic fragments",
            chain(&[(FRAGMENT, atomic), (FRAGMENT, atomic)]),
            Refused,
        ),
        // Mobile IPv6 would show sockets the address in the option, but only with a binding.
        Row::one(
            "a home address",
            v6(
                OPTIONS,
                &[
                    &[UDP, 2, 1, 2, 0, 0, 201, 16][..],
                    &[0xfd, 0x77],
                    &[0; 13],
                    &[3],
                ]
                .concat(),
                &udp(false),
            ),
            Refused,
        ),
    ];
    for kind in [0, 1, 2, 3, 4, 5, 253] {
        let fate = match kind {
            // Mobile IPv6 handles it where the kernel supports it.
            2 => DependsOnKernel,
            // RPL and segment routing are off by default.
            3 | 4 => Refused,
            _ => Delivered,
        };
        let what = format!("a routing header of type {kind} at its end");
        rows.push(one(&what, ROUTING, routing(kind, 0), fate));
        let what = format!("a routing header of type {kind} on its way");
        rows.push(one(&what, ROUTING, routing(kind, 1), Refused));
    }
    // Sockets see them as ordinary protocols.
    for (what, kind, fate) in [
        ("encapsulating security payload", 50, Delivered),
        ("mobility", 135, DependsOnKernel),
        ("HIP", 139, Delivered),
        ("shim6", 140, Delivered),
        ("no next header", NO_NEXT, Delivered),
    ] {
        rows.push(one(what, kind, PADDING, fate));
    }
    rows
}

fn length_rows() -> Vec<Row> {
    let payload = |length: u16, frame: Vec<u8>| {
        changed(frame, |frame| {
            frame[IP + 4..IP + 6].copy_from_slice(&length.to_be_bytes());
        })
    };
    let jumbo = |length: u32| {
        let mut option = vec![UDP, 0, 0xc2, 4];
        option.extend(length.to_be_bytes());
        payload(0, v6(HOP_BY_HOP, &option, &udp(false)))
    };
    vec![
        Row::one(
            "hop-by-hop options and no length",
            payload(0, chain(&[(HOP_BY_HOP, PADDING)])),
            Malformed(MalformedIpv6),
        ),
        Row::one("a short jumbogram", jumbo(21), Refused),
        Row::one("a jumbogram beyond its frame", jumbo(70_000), Refused),
        Row::one(
            "no length",
            payload(0, v6(UDP, &[], &udp(false))),
            Malformed(MalformedUdp),
        ),
        Row::one(
            "a length beyond the frame",
            payload(200, v6(UDP, &[], &udp(false))),
            Refused,
        ),
        Row::one(
            "UDP of no length, as in a jumbogram",
            changed(v6(UDP, &[], &udp(false)), |frame| {
                frame[IP + 44..IP + 46].fill(0);
            }),
            Malformed(MalformedUdp),
        ),
        Row::one(
            "a TCP header beyond its packet",
            changed(
                frame(&path(true).packet(TCP, &path(true).tcp((1, 2), SYN))),
                |frame| {
                    frame[IP + 32] = 0xf0;
                },
            ),
            Malformed(MalformedTcp),
        ),
        Row::one(
            "IPv4 that is longer than its frame",
            changed(frame(&path(true).packet(UDP, &udp(true))), |frame| {
                frame[IP + 3] += 1;
            }),
            Refused,
        ),
        Row::one(
            "IPv4 with a header of 16 bytes",
            changed(frame(&path(true).packet(UDP, &udp(true))), |frame| {
                frame[IP] = 0x44;
            }),
            Refused,
        ),
        Row::one("no IPv6 at all", ethernet(&[], IPV6, &[0; 60]), Refused),
        Row::one(
            "IPv6 cut short",
            ethernet(&[], IPV6, &v6(UDP, &[], &[])[14..50]),
            Refused,
        ),
    ]
}

#[test]
fn whatever_the_headers() -> Result<()> {
    assert_table(&mut Host::new()?, &rows())
}
