//! Keys of buckets: ranges, subscribers, interfaces; and overrides.

use std::net::IpAddr;

use anyhow::Result;
use limiter_common::{
    key::BucketKey,
    limit::{IdFormat, LimitId},
    reason::Reason::{self, OverLimit, Unlimited, WithinLimits},
};
use limiter_policy::policy::{Limit, Match, OverrideId};

use super::{frame, limit, over, v4};
use crate::engine::{Engines, policy};

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
        // Inside the other subscriber's prefix.
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

/// All sources of both families share one bucket.
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

/// All sources share the bucket of each destination. The destination's family is part of the key.
#[test]
fn each_destination_has_a_bucket() -> Result<()> {
    let mut engines = Engines::new(&policy([
        limit(32, IdFormat::Destination, 2),
        limit(33, IdFormat::IpAddress, 100),
    ]))?;
    let mut check = |source: &str, destination: &str, reason| -> Result<()> {
        let frame = frame(source, destination)?.udp(1, 2, b"x")?;
        assert_eq!(
            engines.judge(0, &frame),
            reason,
            "{source} to {destination}"
        );
        Ok(())
    };
    for destination in ["192.0.2.1", "192.0.2.2", "0.0.0.0"] {
        check("10.0.0.1", destination, WithinLimits)?;
        check("10.0.0.2", destination, WithinLimits)?;
        check("10.0.0.3", destination, OverLimit)?;
    }
    // Their leading bits equal the bits of 192.0.2.1.
    for destination in ["c000:201::", "c000:201::1", "::"] {
        check("2001:db8::1", destination, WithinLimits)?;
        check("2001:db8::2", destination, WithinLimits)?;
        check("2001:db8::1", destination, OverLimit)?;
    }
    // A source is no destination.
    check("192.0.2.1", "10.0.0.1", WithinLimits)?;
    engines.assert_same_state();
    for destination in ["192.0.2.2", "c000:201::1"] {
        let destination: IpAddr = destination.parse()?;
        let key = BucketKey::of_destination(LimitId(32), destination.into());
        assert!(engines.maps().bucket(&key)?.is_some());
    }
    Ok(())
}

/// A second limit for one destination, left out of the first, takes the place of an override.
#[test]
fn one_destination_may_have_a_limit_of_its_own() -> Result<()> {
    let own = Limit {
        matching: Match {
            destinations: vec!["192.0.2.25/32".parse()?],
            ..Match::default()
        },
        ..limit(32, IdFormat::Destination, 3)
    };
    let others = Limit {
        matching: Match {
            otherwise: true,
            ..Match::default()
        },
        ..limit(33, IdFormat::Destination, 1)
    };
    let mut engines = Engines::new(&policy([own, others]))?;
    for (destination, passes) in [("192.0.2.25", 3), ("192.0.2.26", 1), ("2001:db8::2", 1)] {
        let source = if destination.contains(':') {
            "2001:db8::1"
        } else {
            "10.0.0.1"
        };
        let frame = frame(source, destination)?.udp(1, 2, b"x")?;
        for _ in 0..passes {
            assert_eq!(engines.judge(0, &frame), WithinLimits, "{destination}");
        }
        assert_eq!(engines.judge(0, &frame), OverLimit, "{destination}");
    }
    engines.assert_same_state();
    Ok(())
}

/// Each address in an override's prefix has its own bucket with these parameters.
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
