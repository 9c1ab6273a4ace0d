//! The verdict on each kind of frame.

mod rows;

use anyhow::Result;
use limiter_common::{
    limit::BUILT_IN,
    reason::Reason::{
        self, LargerThanBurst, MalformedEthernet, OverLimit, Unlimited, WithinLimits,
    },
};
use limiter_datapath::kernel::possible_cpus;
use limiter_native::{BytesFrame, MemoryBuckets, decide_once};
use limiter_policy::policy::{CompiledPolicy, Limit, Rate};
use testbed::Frame;

use crate::engine::{Engines, policy};

const HOUR: u64 = 3_600_000_000_000;

/// The offset of the network header in an untagged frame.
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
        period_ns: HOUR,
    };
    Limit::of_built_in(built_in, Some(rate))
}

fn changed(mut frame: Vec<u8>, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    change(&mut frame);
    frame
}

/// Builds an IPv6 frame with these extension headers in front of TCP.
fn with_extensions(first: u8, extensions: &[u8]) -> Result<Vec<u8>> {
    Ok(changed(v6()?.tcp_syn(1, 2, 0)?, |frame| {
        frame[IP + 6] = first;
        let length = u16::from_be_bytes([frame[IP + 4], frame[IP + 5]]);
        let length = length + u16::try_from(extensions.len()).expect("a short header");
        frame[IP + 4..IP + 6].copy_from_slice(&length.to_be_bytes());
        frame.splice(IP + 40..IP + 40, extensions.iter().copied());
    }))
}

/// A kind of frame: its description, its bytes, and the reasons for the first and the second such
/// frame if there is one token.
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
    for (hour, (case, frame, reasons)) in (0..).zip(rows::all()?) {
        for reason in reasons {
            // More than an hour between rows, so that each finds its bucket full.
            let at = hour * 3_700_000_000_000;
            assert_eq!(engines.judge(at, &frame), reason, "{case}");
        }
    }
    engines.assert_same_state();
    Ok(())
}

/// The kernel passes no frame this short to a program, so the test is native only.
#[test]
fn less_than_an_ethernet_header() -> Result<()> {
    let tables = CompiledPolicy::new(&policy([limit("PacketsPerIPAddress", 1)]), possible_cpus())?;
    let buckets = MemoryBuckets::default();
    let verdict = decide_once(&BytesFrame(&[0; 13]), 0, &tables, &buckets, &(), &());
    assert_eq!(verdict.reason, MalformedEthernet);
    Ok(())
}

/// A limit does not limit packets that it does not count.
#[test]
fn limits_match_what_they_count() -> Result<()> {
    let check = |name: &str, burst, rows: &[(&[u8], [Reason; 2])]| -> Result<()> {
        let mut engines = Engines::new(&policy([limit(name, burst)]))?;
        for (years, (frame, expected)) in (0..).zip(rows) {
            for reason in expected {
                // Buckets are full again.
                let at = years * 365 * 24 * HOUR;
                assert_eq!(engines.judge(at, frame), *reason, "{name}");
            }
        }
        engines.assert_same_state();
        Ok(())
    };
    let (udp4, udp6) = (v4()?.udp(1, 2, b"x")?, v6()?.udp(1, 2, b"x")?);
    let (syn4, syn6) = (v4()?.tcp_syn(1, 2, 0)?, v6()?.tcp_syn(1, 2, 0)?);
    let syn_ack = changed(syn4.clone(), |frame| frame[IP + 20 + 13] = 0x12);
    let extended = with_extensions(0, &[6, 0, 1, 4, 0, 0, 0, 0])?;
    let never = [Unlimited; 2];
    let packets = |name: &str, rows: &[(&[u8], [Reason; 2])]| check(name, 1, rows);
    packets("PacketsPerIPv4Range", &[(&udp4, LIMITED), (&udp6, never)])?;
    packets("PacketsPerIPv6Range", &[(&udp6, LIMITED), (&udp4, never)])?;
    let connections = [
        (&syn4[..], LIMITED),
        (&syn6, LIMITED),
        (&extended, LIMITED),
        (&syn_ack, never),
        (&udp4, never),
    ];
    packets("NewConnectionsPerIPAddress", &connections)?;
    packets("NewConnectionsPerIPv6Range", &[(&syn6, LIMITED)])?;
    packets("NewConnectionsPerIPv4Range", &[(&syn4, LIMITED)])?;
    let bytes = udp4.len() as u64;
    let in_bytes = |burst, reasons| check("BytesPerIPAddress", burst, &[(&udp4, reasons)]);
    in_bytes(bytes * 2 - 1, LIMITED)?;
    in_bytes(bytes * 2, [WithinLimits; 2])?;
    in_bytes(bytes - 1, [LargerThanBurst; 2])?;
    check("BytesPerIPv4Range", bytes, &[(&udp4, LIMITED)])?;
    check("BytesPerIPv6Range", udp6.len() as u64, &[(&udp6, LIMITED)])?;
    Ok(())
}

/// If one limit denies, nothing is charged anywhere.
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
    // The address's own limit ends it at three, which leaves the range one token.
    for _ in 0..3 {
        check(&one, WithinLimits);
    }
    for _ in 0..5 {
        check(&one, OverLimit);
    }
    // Another address of the same /48 takes that token.
    check(&other, WithinLimits);
    check(&other, OverLimit);
    // That address has two tokens left: its denials took none.
    engines.assert_same_state();
    let buckets = engines.maps().bucket_count()?;
    assert_eq!(buckets, 3, "two addresses and one range");
    Ok(())
}
