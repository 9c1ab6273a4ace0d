//! Limits of every kind: the packets that they count, the bucket that they charge, and their effect.

mod keys;
mod modes;

use std::slice;

use anyhow::Result;
use limiter_common::{
    limit::{Cost, IdFormat, LimitId},
    reason::Reason::{OverLimit, Unlimited, WithinLimits},
};
use limiter_policy::policy::{
    Fragments, IcmpTypes, Limit, Match, Override, OverrideId, Rate, TcpFlags,
};
use testbed::Frame;

use crate::engine::{Engines, policy};

/// The time in which a token comes back.
const HOUR: u64 = 3_600_000_000_000;

fn rate(burst: u64) -> Rate {
    Rate {
        burst,
        count: 1,
        period_ns: HOUR,
    }
}

fn limit(id: u16, id_format: IdFormat, burst: u64) -> Limit {
    Limit {
        id: LimitId(id),
        default: Some(rate(burst)),
        ..Limit::with_name(&format!("Limit{id}"), id_format, Cost::Packets)
    }
}

fn matching(matching: Match) -> Limit {
    Limit {
        matching,
        ..limit(32, IdFormat::Total, 1)
    }
}

fn over(id: OverrideId, burst: u64) -> Override {
    Override {
        id,
        rate: rate(burst),
        comment: None,
    }
}

fn frame(source: &str, destination: &str) -> Result<Frame> {
    Ok(Frame::new(source.parse()?, destination.parse()?))
}

fn v4() -> Result<Frame> {
    frame("192.0.2.1", "198.51.100.1")
}

/// Checks a limit of one token: counted frames take it, and other frames are not counted.
fn check(limit: &Limit, counted: &[Vec<u8>], others: &[Vec<u8>]) -> Result<()> {
    let mut engines = Engines::new(&policy([limit.clone()]))?;
    let mut now = 0;
    for (frames, expected) in [
        (counted, [WithinLimits, OverLimit]),
        (others, [Unlimited, Unlimited]),
    ] {
        for (index, frame) in frames.iter().enumerate() {
            // The token is back.
            now += 2 * HOUR;
            let reasons = [engines.judge(now, frame), engines.judge(now, frame)];
            assert_eq!(reasons, expected, "{:?}, frame {index}", limit.matching);
        }
    }
    engines.assert_same_state();
    Ok(())
}

#[test]
fn matches_protocols() -> Result<()> {
    let v6 = frame("2001:db8::1", "2001:db8::2")?;
    let udp = Match {
        protocols: vec![17],
        ..Match::default()
    };
    let (udp4, udp6) = (v4()?.udp(1, 2, b"x")?, v6.udp(1, 2, b"x")?);
    let syn = v4()?.tcp_syn(1, 2, 0)?;
    let (ping4, ping6) = (v4()?.echo(b"x")?, v6.echo(b"x")?);
    check(
        &matching(udp),
        &[udp4.clone(), udp6.clone()],
        &[syn.clone(), ping4.clone(), ping6.clone()],
    )?;
    let echoes = Match {
        protocols: vec![1, 58],
        ..Match::default()
    };
    check(&matching(echoes), &[ping4, ping6], &[syn, udp4, udp6])
}

#[test]
fn matches_ports() -> Result<()> {
    let dns = Match {
        destination_ports: vec![53..=53, 5_000..=5_999],
        ..Match::default()
    };
    let to = |port| v4()?.udp(40_000, port, b"x");
    check(
        &matching(dns.clone()),
        &[
            to(53)?,
            to(5_000)?,
            to(5_999)?,
            v4()?.tcp_syn(40_000, 53, 0)?,
        ],
        &[
            to(52)?,
            to(54)?,
            to(0)?,
            to(6_000)?,
            to(65_535)?,
            v4()?.udp(53, 40_000, b"x")?,
            v4()?.echo(b"x")?,
        ],
    )?;
    // Both ports, and the protocol.
    let reflected = Match {
        protocols: vec![17],
        source_ports: vec![0..=1_023],
        destination_ports: vec![1_024..=65_535],
        ..Match::default()
    };
    check(
        &matching(reflected),
        &[v4()?.udp(123, 1_024, b"x")?, v4()?.udp(0, 65_535, b"x")?],
        &[
            v4()?.udp(123, 1_023, b"x")?,
            v4()?.udp(1_024, 1_024, b"x")?,
            v4()?.tcp_syn(123, 1_024, 0)?,
        ],
    )
}

#[test]
fn matches_tcp_flags() -> Result<()> {
    let with = |flags: u8| -> Result<Vec<u8>> {
        let mut frame = v4()?.tcp_syn(1, 2, 0)?;
        frame[14 + 20 + 13] = flags;
        Ok(frame)
    };
    let resets = Match {
        tcp_flags: Some(TcpFlags {
            set: 0x04,
            clear: 0x10,
        }),
        ..Match::default()
    };
    check(
        &matching(resets),
        &[with(0x04)?, with(0xef)?],
        &[with(0x14)?, with(0)?, with(0x02)?, v4()?.udp(1, 2, b"x")?],
    )
}

/// A ping, made a message of another type.
fn message(frame: &Frame, message_type: u8) -> Result<Vec<u8>> {
    let payload = b"12345678";
    let mut bytes = frame.echo(payload)?;
    let header = bytes.len() - payload.len() - 8;
    bytes[header] = message_type;
    Ok(bytes)
}

fn of_types(icmp: &[u8], icmpv6: &[u8]) -> Limit {
    matching(Match {
        icmp_types: IcmpTypes {
            icmp: icmp.to_vec(),
            icmpv6: icmpv6.to_vec(),
        },
        ..Match::default()
    })
}

/// Each protocol has its own numbers.
#[test]
fn matches_icmp_types() -> Result<()> {
    let (v4, v6) = (v4()?, frame("2001:db8::1", "2001:db8::2")?);
    let both = [v4.echo(b"x")?, v6.echo(b"x")?];
    let mut others = vec![
        v4.udp(8, 128, b"x")?,
        v4.tcp_syn(8, 128, 0)?,
        v6.tcp_ack(8, 128, 0, 0)?,
    ];
    for number in (0..=u8::MAX).filter(|number| *number != 8) {
        others.push(message(&v4, number)?);
    }
    for number in (0..=u8::MAX).filter(|number| *number != 128) {
        others.push(message(&v6, number)?);
    }
    check(&of_types(&[8], &[128]), &both, &others)?;
    let [of_v4, of_v6] = both;
    check(
        &of_types(&[8], &[]),
        slice::from_ref(&of_v4),
        slice::from_ref(&of_v6),
    )?;
    check(
        &of_types(&[], &[128, 2]),
        &[of_v6, message(&v6, 2)?],
        &[of_v4],
    )
}

#[test]
fn matches_destinations() -> Result<()> {
    let two = Match {
        destinations: vec!["198.51.100.0/31".parse()?, "2001:db8:1::/48".parse()?],
        ..Match::default()
    };
    let to = |destination: &str| {
        let source = if destination.contains(':') {
            "2001:db8::1"
        } else {
            "192.0.2.1"
        };
        frame(source, destination)?.udp(1, 2, b"x")
    };
    check(
        &matching(two),
        &[
            to("198.51.100.0")?,
            to("198.51.100.1")?,
            to("2001:db8:1:ffff::")?,
        ],
        &[
            to("198.51.100.2")?,
            to("198.51.99.255")?,
            to("0.0.0.0")?,
            to("2001:db8:2::")?,
            to("::")?,
        ],
    )
}

/// A later IPv6 fragment does not show its protocol, so it counts as any.
#[test]
fn later_fragments_of_ipv6() -> Result<()> {
    let later = |next: u8| -> Result<Vec<u8>> {
        let mut frame = frame("2001:db8:1::1", "2001:db8:2::1")?.udp(1, 2, b"x")?;
        frame[14 + 6] = 44;
        frame[14 + 5] += 8;
        frame.splice(14 + 40..14 + 40, [next, 0, 0, 8, 0, 0, 0, 1]);
        Ok(frame)
    };
    // Its sender may put any next header there.
    let all = [17, 6, 59, 60, 0, 58, 50].map(later);
    let all = all.into_iter().collect::<Result<Vec<_>>>()?;
    let any = [
        Match::default(),
        Match {
            protocols: vec![Match::UDP],
            ..Match::default()
        },
        Match {
            protocols: vec![Match::ICMPV6, 132],
            ..Match::default()
        },
        Match {
            destination_ports: vec![443..=443],
            ..Match::default()
        },
        Match {
            protocols: vec![Match::TCP],
            source_ports: vec![1..=1],
            ..Match::default()
        },
        Match {
            tcp_flags: Some(TcpFlags { set: 2, clear: 0 }),
            ..Match::default()
        },
        of_types(&[], &[128]).matching,
    ];
    let mut limits = Vec::new();
    for counting in any {
        // A limit that ignores the header has nothing to ignore in fragments.
        let is_ignoring = !counting.is_everything();
        let ignoring = Match {
            fragments: Fragments::Ignore,
            ..counting.clone()
        };
        limits.extend([
            (matching(counting), true),
            (matching(ignoring), !is_ignoring),
        ]);
    }
    // Another destination does not count, with any protocol.
    let destination = Match {
        protocols: vec![Match::UDP],
        destinations: vec!["2001:db8:9::/48".parse()?],
        ..Match::default()
    };
    limits.push((matching(destination), false));
    let new_connections = Limit {
        cost: Cost::NewConnections,
        ..matching(Match::default())
    };
    limits.push((new_connections, false));
    let counting = (0..).zip(&limits).filter(|(_, (_, counts))| *counts);
    let counting = counting.fold(0, |set, (limit_index, _)| set | 1 << limit_index);
    let numbered = (32..).zip(&limits).map(|(id, (limit, _))| Limit {
        name: format!("Limit{id}"),
        id: LimitId(id),
        ..limit.clone()
    });
    let mut engines = Engines::new(&policy(numbered))?;
    for (hours, frame) in (0..).zip(&all) {
        let verdict = engines.verdict(hours * 2 * HOUR, frame);
        assert_eq!((verdict.reason, verdict.matched), (WithinLimits, counting));
    }
    engines.assert_same_state();
    Ok(())
}

/// A later IPv4 fragment shows only its protocol.
#[test]
fn later_fragments() -> Result<()> {
    let later = |mut frame: Vec<u8>| {
        frame[14 + 7] = 1;
        frame
    };
    let (udp, syn, ping) = (
        later(v4()?.udp(1, 2, b"x")?),
        later(v4()?.tcp_syn(1, 2, 0)?),
        later(v4()?.echo(b"x")?),
    );
    let pings = of_types(&[8], &[128]).matching;
    let ports = Match {
        destination_ports: vec![443..=443],
        ..Match::default()
    };
    let flags = Match {
        tcp_flags: Some(TcpFlags { set: 2, clear: 0 }),
        ..Match::default()
    };
    let ignored = |matching: &Match| Match {
        fragments: Fragments::Ignore,
        ..matching.clone()
    };
    let all = [udp.clone(), syn.clone(), ping.clone()];
    check(&matching(Match::default()), &all, &[])?;
    check(
        &matching(ports.clone()),
        &[udp.clone(), syn.clone()],
        slice::from_ref(&ping),
    )?;
    check(
        &matching(flags.clone()),
        slice::from_ref(&syn),
        &[udp.clone(), ping.clone()],
    )?;
    check(
        &matching(pings.clone()),
        slice::from_ref(&ping),
        &[udp.clone(), syn.clone()],
    )?;
    check(&of_types(&[], &[128]), &[], slice::from_ref(&ping))?;
    check(&matching(ignored(&ports)), &[], &all)?;
    check(&matching(ignored(&flags)), &[], &all)?;
    check(&matching(ignored(&pings)), &[], &all)?;
    let new_connections = Limit {
        cost: Cost::NewConnections,
        ..matching(Match::default())
    };
    check(&new_connections, &[], &all)?;
    // The match needs nothing of the transport header, so there is nothing to ignore.
    check(&matching(ignored(&Match::default())), &all, &[])
}

/// Types 133 to 137, with the hop limit that only hosts on the same link can send, count only for limits that
/// name them. All other ICMPv6 messages count for every limit.
#[test]
fn neighbour_discovery_is_counted_only_by_its_types() -> Result<()> {
    const HOP_LIMIT: usize = 14 + 7;
    let to_group = frame("fe80::1", "ff02::1:ff00:1")?;
    let message = |message_type, hop_limit| -> Result<Vec<u8>> {
        let mut frame = message(&to_group, message_type)?;
        frame[HOP_LIMIT] = hop_limit;
        Ok(frame)
    };
    let discovery = (133..=137).map(|number| message(number, 255));
    let discovery = discovery.collect::<Result<Vec<_>>>()?;
    let others = [(132, 255), (138, 255), (128, 255), (133, 254), (137, 1)];
    let others = others.map(|(number, hop_limit)| message(number, hop_limit));
    let others = others.into_iter().collect::<Result<Vec<_>>>()?;
    check(&matching(Match::default()), &others, &discovery)?;
    // A limit that names one of them does not change this for other limits.
    let mut engines = Engines::new(&policy([
        matching(Match::default()),
        Limit {
            name: "Solicitations".to_owned(),
            id: LimitId(33),
            ..of_types(&[], &[135])
        },
    ]))?;
    for (frame, counting) in
        (discovery.iter().zip([0, 0, 2, 0, 0])).chain(others.iter().zip([1; 5]))
    {
        assert_eq!(engines.verdict(0, frame).matched, counting);
    }
    let solicitation = slice::from_ref(&discovery[2]);
    check(&of_types(&[], &[135]), solicitation, &others)?;
    check(
        &of_types(&[], &[135]),
        &[message(135, 64)?],
        &discovery[..2],
    )
}
