//! Frames of each kind, with their reasons.

use anyhow::Result;
use limiter_common::reason::Reason::{
    MalformedIcmp, MalformedIpv4, MalformedIpv6, MalformedTcp, MalformedTransport, MalformedUdp,
    MalformedVlan, NotIp,
};
use testbed::{Frame, Tag};

use super::{IP, LIMITED, Row, always, changed, v4, v6, with_extensions};

pub(super) fn all() -> Result<Vec<Row>> {
    Ok([
        ethernet_rows()?,
        ipv4_rows()?,
        transport_rows()?,
        ipv6_rows()?,
        jumbo_rows()?,
    ]
    .concat())
}

fn ethernet_rows() -> Result<Vec<Row>> {
    let tag = Tag::Customer;
    Ok(vec![
        ("IPv4", v4()?.udp(1, 2, b"x")?, LIMITED),
        ("IPv6", v6()?.udp(1, 2, b"x")?, LIMITED),
        ("no payload", v4()?.udp(1, 2, b"")?, LIMITED),
        ("802.1Q", v4()?.tagged(tag(5)).udp(1, 2, b"x")?, LIMITED),
        (
            "802.1ad over 802.1Q",
            v4()?
                .tagged(Tag::Service(7))
                .tagged(tag(5))
                .udp(1, 2, b"x")?,
            LIMITED,
        ),
        (
            "802.1ad over 802.1Q, IPv6",
            v6()?
                .tagged(Tag::Service(7))
                .tagged(tag(5))
                .udp(1, 2, b"x")?,
            LIMITED,
        ),
        ("eight tags", tagged(v4()?, 8).udp(1, 2, b"x")?, LIMITED),
        (
            "eight tags, IPv6",
            tagged(v6()?, 8).udp(1, 2, b"x")?,
            LIMITED,
        ),
        (
            "nine tags",
            tagged(v4()?, 9).udp(1, 2, b"x")?,
            always(MalformedVlan),
        ),
        (
            "twenty tags and nothing else",
            tagged(v4()?, 20).udp(1, 2, b"x")?[..14 + 80].to_vec(),
            always(MalformedVlan),
        ),
        (
            "eight tags, and no IP",
            changed(tagged(v4()?, 8).udp(1, 2, b"x")?, |frame| {
                frame[12 + 32] = 9;
            }),
            always(NotIp),
        ),
        (
            "longer than its frame, behind eight tags",
            changed(tagged(v4()?, 8).udp(1, 2, b"x")?, |frame| {
                frame[IP + 32 + 3] += 1;
            }),
            always(MalformedIpv4),
        ),
        (
            "the eighth tag cut short",
            tagged(v4()?, 8).udp(1, 2, b"x")?[..14 + 31].to_vec(),
            always(MalformedVlan),
        ),
        (
            "a tag cut short",
            v4()?.tagged(tag(5)).udp(1, 2, b"x")?[..17].to_vec(),
            always(MalformedVlan),
        ),
        (
            "ARP",
            changed(vec![0; 42], |frame| frame[12..14].copy_from_slice(&[8, 6])),
            always(NotIp),
        ),
        (
            "an Ethernet header alone",
            changed(vec![0; 14], |f| f[12] = 8),
            always(MalformedIpv4),
        ),
    ])
}

/// Puts the frame behind this many priority tags, every other one of 802.1ad.
fn tagged(frame: Frame, tags: usize) -> Frame {
    [Tag::Customer(0), Tag::Service(0)]
        .into_iter()
        .cycle()
        .take(tags)
        .fold(frame, Frame::tagged)
}

fn ipv4_rows() -> Result<Vec<Row>> {
    Ok(vec![
        (
            "IPv4 with options",
            changed(v4()?.udp(1, 2, b"x")?, |frame| {
                frame[IP] = 0x46;
                frame[IP + 3] += 4;
                frame.splice(IP + 20..IP + 20, [1, 1, 1, 0]);
            }),
            LIMITED,
        ),
        (
            "IPv4 padded to the shortest frame",
            changed(v4()?.udp(1, 2, b"x")?, |frame| frame.resize(60, 0)),
            LIMITED,
        ),
        (
            "IPv4 header cut short",
            v4()?.udp(1, 2, b"x")?[..IP + 19].to_vec(),
            always(MalformedIpv4),
        ),
        (
            "IPv4 that says it is version 6",
            changed(v4()?.udp(1, 2, b"x")?, |frame| frame[IP] = 0x65),
            always(MalformedIpv4),
        ),
        (
            "IPv4 with a header of 16 bytes",
            changed(v4()?.udp(1, 2, b"x")?, |frame| frame[IP] = 0x44),
            always(MalformedIpv4),
        ),
        (
            "IPv4 with a header beyond its end",
            changed(v4()?.udp(1, 2, b"x")?, |frame| frame[IP] = 0x4f),
            always(MalformedIpv4),
        ),
        (
            "IPv4 longer than its frame",
            changed(v4()?.udp(1, 2, b"x")?, |frame| frame[IP + 2] = 0x10),
            always(MalformedIpv4),
        ),
        (
            "IPv4, a later fragment of TCP",
            changed(v4()?.tcp_syn(1, 2, 0)?, |frame| {
                frame[IP + 7] = 1;
                // The middle of a segment, without a TCP header.
                frame[IP + 20..].fill(0);
            }),
            LIMITED,
        ),
    ])
}

/// Builds an IPv4 frame of UDP, with its protocol replaced.
fn of_protocol(number: u8, payload: usize) -> Result<Vec<u8>> {
    Ok(changed(v4()?.udp(1, 2, &[0; 8])?, |frame| {
        frame[IP + 9] = number;
        frame[IP + 3] = 20 + u8::try_from(payload).expect("a short payload");
        frame.truncate(IP + 20 + payload);
    }))
}

fn transport_rows() -> Result<Vec<Row>> {
    let udp_of = |length: u8| -> Result<Vec<u8>> {
        Ok(changed(v4()?.udp(1, 2, b"12345678")?, |frame| {
            frame[IP + 20 + 5] = length;
        }))
    };
    Ok(vec![
        ("a ping", v4()?.echo(b"x")?, LIMITED),
        ("a ping over IPv6", v6()?.echo(b"x")?, LIMITED),
        ("ICMP of 7 bytes", of_protocol(1, 7)?, always(MalformedIcmp)),
        ("ICMP of nothing", of_protocol(1, 0)?, always(MalformedIcmp)),
        ("SCTP", of_protocol(132, 12)?, LIMITED),
        (
            "SCTP of 3 bytes",
            of_protocol(132, 3)?,
            always(MalformedTransport),
        ),
        (
            "UDP-Lite of 3 bytes",
            of_protocol(136, 3)?,
            always(MalformedTransport),
        ),
        (
            "DCCP of nothing",
            of_protocol(33, 0)?,
            always(MalformedTransport),
        ),
        ("GRE of nothing", of_protocol(47, 0)?, LIMITED),
        ("UDP of 7 bytes", of_protocol(17, 7)?, always(MalformedUdp)),
        ("UDP, all of it", udp_of(16)?, LIMITED),
        ("UDP, shorter than its packet", udp_of(15)?, LIMITED),
        (
            "UDP, longer than its packet",
            udp_of(17)?,
            always(MalformedUdp),
        ),
        (
            "UDP, shorter than its header",
            udp_of(7)?,
            always(MalformedUdp),
        ),
        (
            "a first fragment of a long UDP datagram",
            changed(udp_of(200)?, |frame| frame[IP + 6] = 0x20),
            LIMITED,
        ),
        (
            "UDP of 7 bytes, followed by padding",
            changed(of_protocol(17, 7)?, |frame| frame.resize(60, 0)),
            always(MalformedUdp),
        ),
        (
            "TCP with a header beyond the packet",
            changed(v4()?.tcp_syn(1, 2, 0)?, |frame| frame[IP + 20 + 12] = 0xf0),
            always(MalformedTcp),
        ),
        (
            "TCP with a header of 16 bytes",
            changed(v4()?.tcp_syn(1, 2, 0)?, |frame| frame[IP + 20 + 12] = 0x40),
            always(MalformedTcp),
        ),
        (
            "a first fragment that ends inside the TCP header",
            changed(v4()?.tcp_syn(1, 2, 0)?, |frame| {
                frame[IP + 3] = 28;
                frame[IP + 6] = 0x20;
                frame.truncate(IP + 28);
            }),
            always(MalformedTcp),
        ),
    ])
}

fn ipv6_rows() -> Result<Vec<Row>> {
    Ok(vec![
        (
            "IPv6 header cut short",
            v6()?.udp(1, 2, b"x")?[..IP + 39].to_vec(),
            always(MalformedIpv6),
        ),
        (
            "IPv6 that says it is version 4",
            changed(v6()?.udp(1, 2, b"x")?, |frame| frame[IP] = 0x40),
            always(MalformedIpv6),
        ),
        (
            "IPv6 longer than its frame",
            changed(v6()?.udp(1, 2, b"x")?, |frame| frame[IP + 4] = 0x10),
            always(MalformedIpv6),
        ),
        (
            "IPv6, hop-by-hop and destination options",
            with_extensions(0, &[60, 0, 1, 4, 0, 0, 0, 0, 6, 0, 1, 4, 0, 0, 0, 0])?,
            LIMITED,
        ),
        (
            "IPv6, authentication header",
            with_extensions(51, &[6, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])?,
            LIMITED,
        ),
        (
            "IPv6, a later fragment of TCP",
            changed(with_extensions(44, &[6, 0, 0, 8, 0, 0, 0, 1])?, |frame| {
                frame[IP + 48..].fill(0);
            }),
            LIMITED,
        ),
        (
            "IPv6, a later fragment that says nothing follows",
            with_extensions(44, &[59, 0, 0, 8, 0, 0, 0, 1])?,
            LIMITED,
        ),
        (
            "IPv6, a later fragment that says it is a fragment beyond its end",
            changed(with_extensions(44, &[44, 0, 0, 8, 0, 0, 0, 1])?, |frame| {
                frame[IP + 48..].fill(0xff);
            }),
            LIMITED,
        ),
        (
            "IPv6 from an IPv4-mapped address",
            Frame::new("::ffff:192.0.2.1".parse()?, "2001:db8:2::1".parse()?).udp(1, 2, b"x")?,
            always(MalformedIpv6),
        ),
        (
            "IPv6, an extension header beyond the packet",
            with_extensions(0, &[6, 200, 1, 4, 0, 0, 0, 0])?,
            always(MalformedIpv6),
        ),
        (
            "IPv6, nine extension headers",
            with_extensions(60, &[[60, 0, 1, 4, 0, 0, 0, 0]; 9].concat())?,
            always(MalformedIpv6),
        ),
    ])
}

/// Frames that the kernel hands to the program in several pieces, mapping only the first.
fn jumbo_rows() -> Result<Vec<Row>> {
    let options = |next: u8| {
        // 256 units of 8 bytes.
        let mut header = vec![0; 2048];
        header[..2].copy_from_slice(&[next, 255]);
        header
    };
    let deep = |protocol: u8| [options(60), options(60), options(protocol)].concat();
    Ok(vec![
        ("9000 bytes", v4()?.udp(1, 2, &[0; 8_958])?, LIMITED),
        ("9000 bytes, IPv6", v6()?.udp(1, 2, &[0; 8_938])?, LIMITED),
        (
            "the longest IPv4 packet",
            v4()?.udp(1, 2, &[0; 65_507])?,
            LIMITED,
        ),
        (
            "a jumbo frame cut short",
            v4()?.udp(1, 2, &[0; 8_958])?[..8_999].to_vec(),
            always(MalformedIpv4),
        ),
        (
            "a TCP header in another piece than the first",
            with_extensions(60, &deep(6))?,
            LIMITED,
        ),
        (
            "a TCP header in another piece, behind eight tags",
            {
                let mut frame = with_extensions(60, &deep(6))?;
                let tags = &tagged(v6()?, 8).udp(1, 2, b"x")?[12..12 + 32];
                frame.splice(12..12, tags.iter().copied());
                frame
            },
            LIMITED,
        ),
        (
            "a TCP header in another piece, cut short",
            changed(with_extensions(60, &deep(6))?, |frame| {
                let length = u16::try_from(3 * 2048 + 19).expect("short");
                frame[IP + 4..IP + 6].copy_from_slice(&length.to_be_bytes());
                frame.truncate(IP + 40 + 3 * 2048 + 19);
            }),
            always(MalformedTcp),
        ),
        (
            "an extension header in another piece, cut short",
            changed(with_extensions(60, &deep(60))?, |frame| {
                frame[IP + 4..IP + 6].copy_from_slice(&(3 * 2048_u16).to_be_bytes());
                frame.truncate(IP + 40 + 3 * 2048);
            }),
            always(MalformedIpv6),
        ),
    ])
}
