//! VLAN tags, and other things before the IP header.

use std::{net::SocketAddr, time::Duration};

use anyhow::Result;
use limiter_common::reason::Reason::MalformedVlan;
use testbed::{CLIENT_INTERFACE, Load, SERVER_MAC, UdpSource};

use crate::{
    build::{IPV4, IPV6, SNAP, Tag, UDP, ethernet, tagged},
    host::{DESTINATIONS, Host, PORT, SOURCES, add_vlan, path},
    limited::GENEROUS,
    oracle::{
        Fate::{Delivered, Malformed, NotIp, Refused},
        Row, assert_table,
    },
};

/// 802.1Q, 802.1ad, and the outer tags of switches before 802.1ad.
const Q: u16 = 0x8100;
const AD: u16 = 0x88a8;
const OLD: [u16; 3] = [0x9100, 0x9200, 0x9300];

const WITHOUT_VLANS: &str = "this kernel is built without VLAN interfaces: nothing to compare";

/// The bits beside the VID: the priority, and whether the frame may be dropped.
const PRIORITY: u16 = 0xf000;

fn udp(v4: bool) -> Vec<u8> {
    let path = path(v4);
    path.packet(UDP, &path.udp((1, PORT), b"x"))
}

/// Builds rows of both families behind the same tags.
fn behind(what: &str, tags: &[Tag], fate: crate::oracle::Fate) -> [Row; 2] {
    [true, false].map(|v4| {
        let family = if v4 { "IPv4" } else { "IPv6" };
        Row::one(format!("{what}, {family}"), tagged(tags, &udp(v4)), fate)
    })
}

/// Rows that hold with and without VLAN interfaces.
pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    rows.extend(behind("no tag", &[], Delivered));
    for depth in 1..=8 {
        for kind in [Q, AD] {
            let what = format!("{depth} priority tags of {kind:#x}");
            rows.extend(behind(&what, &vec![(kind, 0); depth], Delivered));
        }
        let mixed: Vec<_> = [Q, AD]
            .into_iter()
            .cycle()
            .map(|kind| (kind, 0))
            .take(depth)
            .collect();
        rows.extend(behind(
            &format!("{depth} mixed priority tags"),
            &mixed,
            Delivered,
        ));
    }
    for depth in [9, 10, 40] {
        let what = format!("{depth} priority tags");
        rows.extend(behind(
            &what,
            &vec![(Q, 0); depth],
            Malformed(MalformedVlan),
        ));
    }
    rows.extend(behind("a tag with a priority", &[(Q, PRIORITY)], Delivered));
    for kind in OLD {
        let what = format!("a tag of {kind:#x}");
        rows.extend(behind(&what, &[(kind, 0)], Refused));
        let what = format!("a tag of {kind:#x} in a priority tag");
        rows.extend(behind(&what, &[(Q, 0), (kind, 0)], Refused));
    }
    rows.extend(behind("VLAN 9", &[(Q, 9)], Refused));
    rows.extend(behind(
        "VLAN 9 in a priority tag",
        &[(Q, 0), (Q, 9)],
        Refused,
    ));
    rows.extend(behind(
        "a priority tag in VLAN 9",
        &[(Q, 9), (Q, 0)],
        Refused,
    ));
    rows
}

/// 802.2 and SNAP carry IP as well, but Linux does not look for it there on Ethernet.
pub(crate) fn link_rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (v4, kind) in [(true, IPV4), (false, IPV6)] {
        let packet = udp(v4);
        let snap = [&SNAP[..], &kind.to_be_bytes(), &packet].concat();
        let llc = [&[6, 6, 3][..], &packet].concat();
        let novell = [&[0xff, 0xff][..], &packet].concat();
        for (what, payload) in [("SNAP", &snap), ("802.2", &llc), ("802.3", &novell)] {
            let length = u16::try_from(payload.len()).expect("short");
            rows.push(Row::one(what, ethernet(&[], length, payload), NotIp));
            let what = format!("{what} in a priority tag");
            rows.push(Row::one(what, ethernet(&[(Q, 0)], length, payload), NotIp));
        }
        let other = if v4 { IPV6 } else { IPV4 };
        rows.push(Row::one(
            "an ethertype with the other version's packet",
            ethernet(&[], other, &packet),
            Refused,
        ));
        for (what, kind, before) in [
            ("PPPoE", 0x8864, [0x11, 0, 0, 1, 0, 60, 0, 0x21]),
            ("MPLS", 0x8847, [0, 1, 0x01, 64, 0, 1, 0x01, 64]),
            ("NSH", 0x894f, [0, 0x02, 0x02, 0x01, 0, 0, 1, 255]),
        ] {
            let payload = [&before[..], &packet].concat();
            rows.push(Row::one(what, ethernet(&[], kind, &payload), NotIp));
        }
    }
    rows
}

/// The VLAN interfaces of some tests: 5, within it 6 of 802.1ad, and within that 7.
pub(crate) const VLANS: [Tag; 3] = [(Q, 5), (AD, 6), (Q, 7)];

pub(crate) fn vlan_rows() -> Vec<Row> {
    let mut rows = rows();
    rows.extend(behind("VLAN 5", &VLANS[..1], Delivered));
    rows.extend(behind(
        "VLAN 5 with a priority",
        &[(Q, PRIORITY | 5)],
        Delivered,
    ));
    rows.extend(behind("VLAN 5 of the other kind", &[(AD, 5)], Refused));
    rows.extend(behind("VLAN 6 in 5", &VLANS[..2], Delivered));
    rows.extend(behind("VLAN 7 in 6 in 5", &VLANS, Delivered));
    let in_priority = [(Q, 0), (AD, 0), (Q, 5)];
    rows.extend(behind("VLAN 5 in priority tags", &in_priority, Delivered));
    let around_priority = [(Q, 5), (Q, 0), (AD, 0)];
    rows.extend(behind(
        "priority tags in VLAN 5",
        &around_priority,
        Delivered,
    ));
    let all = [&VLANS[..], &[(Q, 0); 5]].concat();
    rows.extend(behind("five priority tags in three VLANs", &all, Delivered));
    let deeper = [&VLANS[..], &[(Q, 0); 6]].concat();
    rows.extend(behind(
        "six priority tags in three VLANs",
        &deeper,
        Malformed(MalformedVlan),
    ));
    rows
}

#[test]
fn behind_any_tags() -> Result<()> {
    assert_table(&mut Host::new()?, &rows())
}

#[test]
fn behind_any_tags_with_vlan_interfaces() -> Result<()> {
    let mut host = Host::new()?;
    if !host.add_vlans(&VLANS)? {
        println!("{WITHOUT_VLANS}");
        return Ok(());
    }
    assert_table(&mut host, &vlan_rows())
}

/// A network card moves the outermost tag from the frame to its metadata, as does a veth pair with
/// frames from a VLAN interface at its other end.
#[test]
fn beside_the_frame() -> Result<()> {
    // The host needs an interface for the first tag, and none for the second.
    for tag in [VLANS[0], (Q, 0)] {
        for limited in [None, Some("native"), Some("generic")] {
            let mut host = Host::new()?;
            if !host.add_vlans(&VLANS[..1])? {
                println!("{WITHOUT_VLANS}");
                return Ok(());
            }
            let client = &host.pair().client;
            add_vlan(client, CLIENT_INTERFACE, "v0", tag)?;
            let neighbour = SERVER_MAC.map(|byte| format!("{byte:02x}")).join(":");
            client.ip_batch(&format!(
                "addr add {}/32 dev v0\nroute replace {}/32 dev v0 src {}\n\
                 neighbour replace {} lladdr {neighbour} dev v0 nud permanent\n",
                SOURCES[0], DESTINATIONS[0], SOURCES[0], DESTINATIONS[0],
            ))?;
            let limiter = limited.map(|mode| host.limit(mode, GENEROUS)).transpose()?;
            if let Some(limiter) = &limiter {
                limiter.show(&["ban", "--force", SOURCES[0]])?;
            }
            let destination = SocketAddr::new(DESTINATIONS[0].parse()?, PORT);
            UdpSource::new(&host.pair().client, SOURCES[0].parse()?, destination)?
                .send(Load::saturating(Duration::from_secs(10)).at_most(10), 20)?;
            let deliveries = host.send(&[])?;
            let from_it = deliveries
                .iter()
                .filter(|delivery| delivery.source.to_string() == SOURCES[0]);
            // Each packet reaches the UDP socket, and a copy the raw one.
            let expected = if limited.is_some() { 0 } else { 20 };
            assert_eq!(from_it.count(), expected, "{tag:?}, {limited:?}");
        }
    }
    Ok(())
}

#[test]
fn in_other_link_layers() -> Result<()> {
    assert_table(&mut Host::new()?, &link_rows())
}
