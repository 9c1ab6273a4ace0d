//! Limits of every kind: what they count, whose budget it is, and what they do.

use std::slice;

use anyhow::Result;
use limiter_common::{
    counters::LimitTraffic,
    limit::{Cost, IdFormat, LimitId},
    owner::BucketKey,
    reason::{
        Action,
        Reason::{self, MalformedUdp, OverLimit, Unlimited, WithinLimits},
    },
    strategy::Strategy,
};
use limiter_policy::policy::{
    Fragments, Limit, Match, Mode, Override, OverrideId, Policy, Rate, TcpFlags,
};
use testbed::Frame;

use crate::engine::{Engines, policy};

/// Nothing comes back within a test.
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
        name: format!("Limit{id}"),
        id: LimitId(id),
        id_format,
        cost: Cost::Packets,
        strategy: Strategy::Gcra,
        matching: Match::default(),
        mode: Mode::Enforce,
        ban: None,
        default: Some(rate(burst)),
        overrides: Vec::new(),
        ip_rep: None,
        metrics: None,
        exclude: Vec::new(),
        block: Vec::new(),
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

/// A limit of one token: the frames that take it, and those that it does not count.
fn check(limit: &Limit, counted: &[Vec<u8>], others: &[Vec<u8>]) -> Result<()> {
    for (frames, expected) in [
        (counted, [WithinLimits, OverLimit]),
        (others, [Unlimited, Unlimited]),
    ] {
        for (place, frame) in frames.iter().enumerate() {
            let mut engines = Engines::new(&policy([limit.clone()]))?;
            let reasons = [engines.judge(0, frame), engines.judge(0, frame)];
            assert_eq!(reasons, expected, "{:?}, frame {place}", limit.matching);
            engines.assert_same_state();
        }
    }
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

/// A later IPv6 fragment does not tell even its protocol: it counts for any.
#[test]
fn later_fragments_of_ipv6() -> Result<()> {
    let later = |next: u8| -> Result<Vec<u8>> {
        let mut frame = frame("2001:db8:1::1", "2001:db8:2::1")?.udp(1, 2, b"x")?;
        frame[14 + 6] = 44;
        frame[14 + 5] += 8;
        frame.splice(14 + 40..14 + 40, [next, 0, 0, 8, 0, 0, 0, 1]);
        Ok(frame)
    };
    // What it says is whatever its sender likes.
    let all = [17, 6, 59, 60, 0, 58, 50].map(later);
    let all = all.into_iter().collect::<Result<Vec<_>>>()?;
    let match_all = [
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
    ];
    for counting in match_all {
        check(&matching(counting.clone()), &all, &[])?;
        let everything = counting.is_everything();
        let ignoring = matching(Match {
            fragments: Fragments::Ignore,
            ..counting
        });
        if everything {
            // There is nothing to ignore.
            check(&ignoring, &all, &[])?;
        } else {
            check(&ignoring, &[], &all)?;
        }
    }
    // Elsewhere is elsewhere, whatever it is of.
    let destination = Match {
        protocols: vec![Match::UDP],
        destinations: vec!["2001:db8:9::/48".parse()?],
        ..Match::default()
    };
    check(&matching(destination), &[], &all)?;
    let new_connections = Limit {
        cost: Cost::NewConnections,
        ..matching(Match::default())
    };
    check(&new_connections, &[], &all)
}

/// A later IPv4 fragment tells its protocol, and nothing more.
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
        &[udp.clone(), ping],
    )?;
    check(&matching(ignored(&ports)), &[], &all)?;
    check(&matching(ignored(&flags)), &[], &all)?;
    let new_connections = Limit {
        cost: Cost::NewConnections,
        ..matching(Match::default())
    };
    check(&new_connections, &[], &all)?;
    // Nothing of the transport header is asked for, so there is nothing to ignore.
    check(&matching(ignored(&Match::default())), &all, &[])
}

#[test]
fn ranges_of_any_length() -> Result<()> {
    let from = |source: &str| {
        let destination = if source.contains(':') {
            "2001:db8::2"
        } else {
            "198.51.100.1"
        };
        frame(source, destination)?.udp(1, 2, b"x")
    };
    let check = |id_format, sources: &[(&str, Reason)]| -> Result<()> {
        let mut engines = Engines::new(&policy([limit(32, id_format, 1)]))?;
        for (source, reason) in sources {
            assert_eq!(engines.judge(0, &from(source)?), *reason, "{source}");
        }
        engines.assert_same_state();
        Ok(())
    };
    check(
        IdFormat::Ipv4RangeCidr { prefix_length: 20 },
        &[
            ("10.1.16.1", WithinLimits),
            ("10.1.31.255", OverLimit),
            ("10.1.32.0", WithinLimits),
            ("2001:db8::1", Unlimited),
        ],
    )?;
    check(
        IdFormat::Ipv6RangeCidr { prefix_length: 65 },
        &[
            ("2001:db8::1", WithinLimits),
            ("2001:db8:0:0:7fff::", OverLimit),
            ("2001:db8:0:0:8000::", WithinLimits),
            ("2001:db8:0:1::", WithinLimits),
            ("10.1.16.1", Unlimited),
        ],
    )
}

/// All prefixes of a subscriber, of both families, share one bucket.
#[test]
fn subscribers_share_a_bucket() -> Result<()> {
    let mut policy = policy([
        Limit {
            overrides: vec![over(OverrideId::Subscriber(7), 1)],
            ..limit(32, IdFormat::RegId, 3)
        },
        limit(33, IdFormat::IpAddress, 100),
    ]);
    policy.subscribers = [
        (5, vec!["10.5.0.0/16".parse()?, "2001:db8:5::/48".parse()?]),
        // Inside another one's.
        (7, vec!["10.5.7.0/24".parse()?]),
    ]
    .into();
    let mut engines = Engines::new(&policy)?;
    let mut check = |source: &str, reason| -> Result<()> {
        let destination = if source.contains(':') {
            "::1"
        } else {
            "10.0.0.1"
        };
        let frame = frame(source, destination)?.udp(1, 2, b"x")?;
        assert_eq!(engines.judge(0, &frame), reason, "{source}");
        Ok(())
    };
    check("10.5.1.1", WithinLimits)?;
    check("10.5.9.9", WithinLimits)?;
    check("2001:db8:5::1", WithinLimits)?;
    check("2001:db8:5::2", OverLimit)?;
    check("10.5.1.1", OverLimit)?;
    check("10.5.7.1", WithinLimits)?;
    check("10.5.7.2", OverLimit)?;
    for _ in 0..5 {
        check("10.6.0.1", WithinLimits)?;
    }
    engines.assert_same_state();
    for subscriber in [5, 7] {
        let key = BucketKey::of_subscriber(LimitId(32), subscriber);
        assert!(engines.maps().bucket(&key)?.is_some());
    }
    Ok(())
}

/// Everybody on one bucket, whatever the family.
#[test]
fn a_total_is_shared_by_all() -> Result<()> {
    let mut engines = Engines::new(&policy([limit(32, IdFormat::Total, 2)]))?;
    let (one, other) = (
        v4()?.udp(1, 2, b"x")?,
        frame("2001:db8::1", "2001:db8::2")?.udp(1, 2, b"x")?,
    );
    assert_eq!(engines.judge(0, &one), WithinLimits);
    assert_eq!(engines.judge(0, &other), WithinLimits);
    assert_eq!(engines.judge(0, &one), OverLimit);
    assert_eq!(engines.judge(0, &other), OverLimit);
    assert_eq!(engines.maps().bucket_count()?, 1);
    let key = BucketKey::of_interface(LimitId(32), 0);
    assert!(engines.maps().bucket(&key)?.is_some());
    Ok(())
}

/// Each address in an override's prefix has a bucket of its own with those parameters.
#[test]
fn overrides_by_prefix() -> Result<()> {
    let prefix = |text: &str| Ok::<_, anyhow::Error>(OverrideId::Prefix(text.parse()?));
    let limit = Limit {
        overrides: vec![
            over(prefix("10.0.0.0/8")?, 2),
            over(prefix("10.1.0.0/16")?, 3),
            over(prefix("10.1.1.1/32")?, 4),
        ],
        ..limit(32, IdFormat::IpAddress, 1)
    };
    let only_overrides = Limit {
        default: None,
        ..limit.clone()
    };
    for (limit, others) in [(limit, Some(1)), (only_overrides, None)] {
        let mut engines = Engines::new(&policy([limit]))?;
        for (source, burst) in [
            ("10.0.0.1", Some(2)),
            ("10.0.0.2", Some(2)),
            ("10.1.0.1", Some(3)),
            ("10.1.1.1", Some(4)),
            ("11.0.0.0", others),
        ] {
            let frame = frame(source, "198.51.100.1")?.udp(1, 2, b"x")?;
            for _ in 0..burst.unwrap_or(9) {
                let expected = if burst.is_some() {
                    WithinLimits
                } else {
                    Unlimited
                };
                assert_eq!(engines.judge(0, &frame), expected, "{source}");
            }
            if burst.is_some() {
                assert_eq!(engines.judge(0, &frame), OverLimit, "{source}");
            }
        }
    }
    Ok(())
}

/// A limit that observes drops nothing, and counts what it would have dropped of what the
/// others let pass.
#[test]
fn observes() -> Result<()> {
    let mut engines = Engines::new(&policy([
        Limit {
            mode: Mode::Observe,
            ..limit(32, IdFormat::IpAddress, 2)
        },
        limit(33, IdFormat::IpAddress, 5),
        Limit {
            mode: Mode::Observe,
            ..limit(34, IdFormat::IpAddress, 3)
        },
        Limit {
            mode: Mode::Off,
            ..limit(35, IdFormat::IpAddress, 1)
        },
    ]))?;
    let frame = v4()?.udp(1, 2, b"x")?;
    let would_drop: Vec<u64> = (0..7)
        .map(|_| engines.verdict(0, &frame).would_drop)
        .collect();
    assert_eq!(would_drop, [0, 0, 0b001, 0b101, 0b101, 0, 0]);
    engines.assert_same_state();
    let counted = |id| -> Result<[u64; 3]> {
        let LimitTraffic {
            passed,
            dropped,
            would_drop,
        } = engines.maps().limit_traffic(LimitId(id))?;
        Ok([passed.packets, dropped.packets, would_drop.packets])
    };
    assert_eq!(counted(32)?, [2, 0, 3]);
    assert_eq!(counted(33)?, [5, 2, 0]);
    assert_eq!(counted(34)?, [3, 0, 2]);
    assert_eq!(counted(35)?, [0, 0, 0]);
    assert_eq!(engines.maps().bucket_count()?, 3);
    Ok(())
}

/// Observed alone, nothing is ever dropped, not even what never fits.
#[test]
fn observes_what_never_fits() -> Result<()> {
    let mut engines = Engines::new(&policy([Limit {
        mode: Mode::Observe,
        cost: Cost::Bytes,
        ..limit(32, IdFormat::IpAddress, 50)
    }]))?;
    let verdict = engines.verdict(0, &v4()?.udp(1, 2, &[0; 500])?);
    assert_eq!((verdict.reason, verdict.would_drop), (WithinLimits, 1));
    assert_eq!(engines.maps().bucket_count()?, 0);
    Ok(())
}

#[test]
fn malformed_packets_pass_where_the_policy_says_so() -> Result<()> {
    let mut frame = v4()?.udp(1, 2, b"x")?;
    frame[14 + 20 + 5] = 7;
    for malformed in [Action::Drop, Action::Pass] {
        let policy = Policy {
            malformed,
            ..policy([limit(32, IdFormat::IpAddress, 1)])
        };
        let mut engines = Engines::new(&policy)?;
        for _ in 0..3 {
            let verdict = engines.verdict(0, &frame);
            assert_eq!(verdict.reason, MalformedUdp);
            assert_eq!(verdict.action(engines.tables()), malformed);
        }
        engines.assert_same_state();
    }
    Ok(())
}

/// As many as fit, each with a match of its own.
#[test]
fn sixty_four_limits() -> Result<()> {
    let limits = (32..96_u16).map(|id| Limit {
        matching: Match {
            destination_ports: vec![id..=id],
            ..Match::default()
        },
        ..limit(id, IdFormat::IpAddress, u64::from(id - 31))
    });
    let mut engines = Engines::new(&policy(limits))?;
    for port in 31..97 {
        let frame = v4()?.udp(9, port, b"x")?;
        let burst = match port {
            32..96 => usize::from(port - 31),
            _ => 0,
        };
        for _ in 0..burst {
            assert_eq!(engines.judge(0, &frame), WithinLimits, "port {port}");
        }
        let last = if burst > 0 { OverLimit } else { Unlimited };
        assert_eq!(engines.judge(0, &frame), last, "port {port}");
    }
    engines.assert_same_state();
    Ok(())
}
