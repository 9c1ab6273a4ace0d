//! Packets within packets, and every protocol number and ethertype.

use std::net::IpAddr;

use anyhow::Result;

use crate::{
    build::{AUTHENTICATION, IN_IPV4, IN_IPV6, IPV4, IPV6, OPTIONS, Path, UDP, ethernet, frame},
    host::{Host, PORT, path},
    oracle::{
        Fate::{Delivered, Refused},
        Row, assert_judged, assert_table, is_not_ip,
    },
};

/// The number of frames sent between two reads of the sockets.
pub(crate) const BATCH: usize = 256;

/// The ethertypes that a plain host accepts.
const KNOWN: [u16; 2] = [IPV4, IPV6];

/// Builds a datagram from another source than the outer packet's.
fn inner(v4: bool) -> Vec<u8> {
    let source = if v4 { "10.77.0.3" } else { "fd77::3" };
    let path = Path {
        source: source.parse::<IpAddr>().expect("an address"),
        ..path(v4)
    };
    path.packet(UDP, &path.udp((1, PORT), b"inside"))
}

/// A plain host has no tunnels, so it delivers only the outer packet.
pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for outer in [true, false] {
        for inside in [true, false] {
            let (protocol, ether_type) = if inside {
                (IN_IPV4, IPV4)
            } else {
                (IN_IPV6, IPV6)
            };
            let version = |v4| if v4 { "IPv4" } else { "IPv6" };
            let what = format!("{} in {}", version(inside), version(outer));
            let inner = inner(inside);
            let mut add = |how: &str, protocol: u8, before: &[u8]| {
                let payload = [before, &inner].concat();
                let frame = frame(&path(outer).packet(protocol, &payload));
                rows.push(Row::one(format!("{what}, {how}"), frame, Delivered));
            };
            let [high, low] = ether_type.to_be_bytes();
            add("plain", protocol, &[]);
            add("GRE", 47, &[0, 0, high, low]);
            add("GRE with a key", 47, &[0x20, 0, high, low, 0, 0, 0, 1]);
            let bridged = ethernet(&[], ether_type, &[]);
            add(
                "GRE with Ethernet",
                47,
                &[&[0, 0, 0x65, 0x58][..], &bridged].concat(),
            );
            add("EtherIP", 97, &[&[0x30, 0][..], &bridged].concat());
            add("segment routing's Ethernet", 143, &bridged);
            add("L2TP", 115, &[0, 0, 0, 1, 0, 0, 0, 0]);
            add("MPLS", 137, &[0, 0, 0x01, 64]);
            add(
                "a multicast router's register",
                103,
                &[0x21, 0, 0, 0, 0, 0, 0, 0],
            );
            add(
                "minimal encapsulation",
                55,
                &[protocol, 0, 0, 0, 10, 77, 0, 1],
            );
            add("IP payload compression", 108, &[protocol, 0, 0, 1]);
            // Without a key, the stack does not look inside.
            let fate = if outer { Delivered } else { Refused };
            let header = [protocol, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0];
            let packet = path(outer).packet(AUTHENTICATION, &[&header[..], &inner].concat());
            let what = format!("{what}, authentication header");
            rows.push(Row::one(what, frame(&packet), fate));
        }
    }
    let udp = |port, before: &[u8]| {
        let path = path(true);
        let data = [before, &inner(true)].concat();
        frame(&path.packet(UDP, &path.udp((port, port), &data)))
    };
    let bridged = ethernet(&[], IPV4, &[]);
    for (what, port, before) in [
        (
            "VXLAN",
            4789,
            [&[8, 0, 0, 0, 0, 0, 1, 0][..], &bridged].concat(),
        ),
        (
            "Geneve",
            6081,
            [&[0, 0, 0x65, 0x58, 0, 0, 1, 0][..], &bridged].concat(),
        ),
        ("GTP", 2152, vec![0x30, 255, 0, 40, 0, 0, 0, 1]),
        ("ESP in UDP", 4500, vec![0, 0, 0, 1, 0, 0, 0, 1]),
        ("L2TP", 1701, vec![0, 2, 0, 1, 0, 1]),
        ("IP in UDP", 5555, vec![]),
        ("Teredo", 3544, vec![]),
    ] {
        rows.push(Row::one(
            format!("IPv4 in IPv4, {what}"),
            udp(port, &before),
            Delivered,
        ));
    }
    rows
}

/// Frames of each unknown ethertype: a packet of either family, with and without a priority tag.
pub(crate) fn of_unknown_types() -> impl Iterator<Item = Vec<u8>> {
    let packets = [true, false].map(inner);
    (0..=u16::MAX)
        .filter(|kind| !KNOWN.contains(kind))
        .flat_map(move |kind| {
            packets.clone().into_iter().flat_map(move |packet| {
                let priority: &[(u16, u16)] = &[(0x8100, 0)];
                [&[][..], priority].map(|tags| ethernet(tags, kind, &packet))
            })
        })
}

/// Packets of each protocol number; the payload could be an extension header or a packet.
pub(crate) fn of_each_protocol() -> impl Iterator<Item = Vec<u8>> {
    (0..=u8::MAX).flat_map(|protocol| {
        let extended = |v4| {
            [
                &[UDP, 0, 1, 4, 0, 0, 0, 0][..],
                &path(v4).udp((1, PORT), b"x"),
            ]
            .concat()
        };
        [true, false].into_iter().flat_map(move |v4| {
            let payloads = [
                inner(true),
                inner(false),
                extended(v4),
                path(v4).udp((1, PORT), b"x"),
            ];
            payloads.into_iter().flat_map(move |payload| {
                let plain = frame(&path(v4).packet(protocol, &payload));
                let options = [&[protocol, 0, 1, 4, 0, 0, 0, 0][..], &payload].concat();
                [plain, frame(&path(v4).packet(OPTIONS, &options))]
            })
        })
    })
}

#[test]
fn packets_in_packets() -> Result<()> {
    assert_table(&mut Host::new()?, &rows())
}

#[test]
fn of_any_ethertype() -> Result<()> {
    let mut host = Host::new()?;
    let frames: Vec<_> = of_unknown_types().collect();
    for batch in frames.chunks(BATCH) {
        let deliveries = host.send(batch)?;
        assert!(deliveries.is_empty(), "{deliveries:?}");
        let other = batch.iter().find(|frame| !is_not_ip(frame));
        assert_eq!(other, None, "judged as a packet");
    }
    Ok(())
}

#[test]
fn of_any_protocol() -> Result<()> {
    let mut host = Host::new()?;
    let mut delivered = 0;
    let mut problems = Vec::new();
    for frame in of_each_protocol() {
        let frames = [frame];
        let deliveries = host.send(&frames)?;
        delivered += deliveries.len();
        if let Err(problem) = assert_judged(&frames, &deliveries) {
            problems.push(problem);
        }
    }
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
    // Nearly every protocol of both families has a socket.
    assert!(delivered > 1_000, "{delivered}");
    Ok(())
}
