//! Modes, malformed packets, and the maximum number of limits.

use anyhow::Result;
use limiter_common::{
    counters::LimitTraffic,
    limit::{Cost, IdFormat, LimitId},
    reason::{
        Action,
        Reason::{MalformedUdp, OverLimit, Unlimited, WithinLimits},
    },
};
use limiter_policy::policy::{Limit, Match, Mode, Policy};

use super::{limit, v4};
use crate::engine::{Engines, policy};

/// An observing limit drops nothing. It counts the packets that it would have dropped among the
/// packets that other limits pass.
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

/// An observing limit does not even drop a packet above its burst.
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

/// As many limits as fit, each with another match.
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
