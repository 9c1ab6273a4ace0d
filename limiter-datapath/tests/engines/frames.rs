//! What happens to each kind of frame.

use anyhow::Result;
use limiter_common::{
    limit::BUILT_IN,
    reason::Reason::{
        self, LargerThanBurst, MalformedEthernet, MalformedIcmp, MalformedIpv4, MalformedIpv6,
        MalformedTcp, MalformedTransport, MalformedUdp, MalformedVlan, NotIp, OverLimit, Unlimited,
        WithinLimits,
    },
};
use limiter_datapath::{
    kernel::possible_cpus,
    native::{BytesFrame, MemoryBuckets, decide_once},
};
use limiter_policy::policy::{CompiledPolicy, Limit, Rate};
use testbed::{Frame, Tag};

use crate::engine::{Engines, policy};

/// Where the network header of an untagged frame starts.
const IP: usize = 14;

fn v4() -> Result<Frame> {
    Ok(Frame::new("192.0.2.1".parse()?, "192.0.2.2".parse()?))
}

fn v6() -> Result<Frame> {
    Ok(Frame::new(
        "2001:db8:1::1".parse()?,
        "2001:db8:2::1".parse()?,
    ))
}

fn limit(name: &str, burst: u64) -> Limit {
    let built_in = BUILT_IN
        .iter()
        .find(|limit| limit.name == name)
        .expect("a built-in limit");
    let rate = Rate {
        burst,
        count: 1,
        period_ns: 3_600_000_000_000,
    };
    Limit::of_built_in(built_in, Some(rate))
}

fn changed(mut frame: Vec<u8>, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    change(&mut frame);
    frame
}

/// An IPv6 frame whose payload starts with the given extension headers, the rest being TCP.
fn with_extensions(first: u8, extensions: &[u8]) -> Result<Vec<u8>> {
    Ok(changed(v6()?.tcp_syn(1, 2, 0)?, |frame| {
        frame[IP + 6] = first;
        let length = u16::from_be_bytes([frame[IP + 4], frame[IP + 5]]);
        let length = length + u16::try_from(extensions.len()).expect("a short header");
        frame[IP + 4..IP + 6].copy_from_slice(&length.to_be_bytes());
        frame.splice(IP + 40..IP + 40, extensions.iter().copied());
    }))
}

/// A kind of frame: what it is, its bytes, and the reasons of the first and the second of
/// them when there is one token.
type Row = (&'static str, Vec<u8>, [Reason; 2]);

const LIMITED: [Reason; 2] = [WithinLimits, OverLimit];

const fn always(reason: Reason) -> [Reason; 2] {
    [reason, reason]
}

#[test]
fn each_kind_of_frame() -> Result<()> {
    let mut engines = Engines::new(&policy([
        limit("PacketsPerIPAddress", 1),
        limit("PacketsPerIPv6Range", 1),
    ]))?;
    let rows = [
        ethernet_rows()?,
        ipv4_rows()?,
        transport_rows()?,
        ipv6_rows()?,
        jumbo_rows()?,
    ]
    .concat();
    for (hour, (what, frame, reasons)) in (0..).zip(rows) {
        for reason in reasons {
            // An hour and more between the rows: each finds its bucket full.
            let at = hour * 3_700_000_000_000;
            assert_eq!(engines.judge(at, &frame), reason, "{what}");
        }
    }
    engines.assert_same_state();
    Ok(())
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

/// Behind as many priority tags, each other one a provider's.
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
                // Not a TCP header at all: it is the middle of a segment.
                frame[IP + 20..].fill(0);
            }),
            LIMITED,
        ),
    ])
}

/// An IPv4 frame that says its payload is of another protocol than UDP.
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

/// The kernel hands these to the program in several pieces, of which it maps only the first.
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

/// Shorter than the kernel hands to any program, so natively alone.
#[test]
fn less_than_an_ethernet_header() -> Result<()> {
    let tables = CompiledPolicy::new(&policy([limit("PacketsPerIPAddress", 1)]), possible_cpus())?;
    let buckets = MemoryBuckets::default();
    let verdict = decide_once(&BytesFrame(&[0; 13]), 0, &tables, &buckets, &(), &());
    assert_eq!(verdict.reason, MalformedEthernet);
    Ok(())
}

/// What a limit does not count, it does not limit.
#[test]
fn limits_match_what_they_count() -> Result<()> {
    let check = |name: &str, burst, frame: &[u8], expected: [Reason; 2]| -> Result<()> {
        let mut engines = Engines::new(&policy([limit(name, burst)]))?;
        for reason in expected {
            assert_eq!(engines.judge(0, frame), reason, "{name}");
        }
        engines.assert_same_state();
        Ok(())
    };
    let (udp4, udp6) = (v4()?.udp(1, 2, b"x")?, v6()?.udp(1, 2, b"x")?);
    let (syn4, syn6) = (v4()?.tcp_syn(1, 2, 0)?, v6()?.tcp_syn(1, 2, 0)?);
    let syn_ack = changed(syn4.clone(), |frame| frame[IP + 20 + 13] = 0x12);
    let extended = with_extensions(0, &[6, 0, 1, 4, 0, 0, 0, 0])?;
    check("PacketsPerIPv4Range", 1, &udp4, LIMITED)?;
    check("PacketsPerIPv4Range", 1, &udp6, [Unlimited; 2])?;
    check("PacketsPerIPv6Range", 1, &udp6, LIMITED)?;
    check("PacketsPerIPv6Range", 1, &udp4, [Unlimited; 2])?;
    check("NewConnectionsPerIPAddress", 1, &syn4, LIMITED)?;
    check("NewConnectionsPerIPAddress", 1, &syn6, LIMITED)?;
    check("NewConnectionsPerIPAddress", 1, &extended, LIMITED)?;
    check("NewConnectionsPerIPAddress", 1, &syn_ack, [Unlimited; 2])?;
    check("NewConnectionsPerIPAddress", 1, &udp4, [Unlimited; 2])?;
    check("NewConnectionsPerIPv6Range", 1, &syn6, LIMITED)?;
    check("NewConnectionsPerIPv4Range", 1, &syn4, LIMITED)?;
    let bytes = udp4.len() as u64;
    check("BytesPerIPAddress", bytes * 2 - 1, &udp4, LIMITED)?;
    check("BytesPerIPAddress", bytes * 2, &udp4, [WithinLimits; 2])?;
    check("BytesPerIPAddress", bytes - 1, &udp4, [LargerThanBurst; 2])?;
    check("BytesPerIPv4Range", bytes, &udp4, LIMITED)?;
    check("BytesPerIPv6Range", udp6.len() as u64, &udp6, LIMITED)?;
    Ok(())
}

/// One denial, and nothing is charged anywhere.
#[test]
fn all_or_nothing() -> Result<()> {
    let mut engines = Engines::new(&policy([
        limit("PacketsPerIPAddress", 3),
        limit("PacketsPerIPv6Range", 4),
    ]))?;
    let from = |host: u16| -> Result<Vec<u8>> {
        let source = format!("2001:db8:1:{host}::1").parse()?;
        Frame::new(source, "2001:db8:2::1".parse()?).udp(1, 2, b"x")
    };
    let (one, other) = (from(1)?, from(2)?);
    let mut check = |frame: &[u8], reason| assert_eq!(engines.judge(0, frame), reason);
    // The address's own limit ends it at three, which leaves the range one token…
    for _ in 0..3 {
        check(&one, WithinLimits);
    }
    for _ in 0..5 {
        check(&one, OverLimit);
    }
    // …for another address of the same /48.
    check(&other, WithinLimits);
    check(&other, OverLimit);
    // Which has two tokens left of its own: the denials took none.
    engines.assert_same_state();
    let buckets = engines.maps().bucket_count()?;
    assert_eq!(buckets, 3, "two addresses and one range");
    Ok(())
}
