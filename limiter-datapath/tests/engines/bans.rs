//! Bans: the addresses that they hold for, and their ends.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anyhow::Result;
use ipnet::IpNet;
use limiter_common::{
    ban::Hits,
    reason::Reason::{Banned, WithinLimits},
};
use limiter_policy::policy::{Limit, Rate};
use testbed::Frame;

use crate::engine::{Engines, policy};

const MINUTE: u64 = 60_000_000_000;

/// Makes engines with a limit that passes all packets of the test.
fn engines() -> Result<Engines> {
    let rate = Rate {
        burst: 1_000,
        count: 1_000,
        period_ns: 1_000_000_000,
    };
    let limit = Limit::of_built_in(&limiter_common::limit::BUILT_IN[0], Some(rate));
    Ok(Engines::new(&policy([limit]))?)
}

/// Builds a packet of a source.
fn from(source: IpAddr) -> Vec<u8> {
    let destination = match source {
        IpAddr::V4(_) => "192.0.2.1",
        IpAddr::V6(_) => "2001:db8:ffff::1",
    };
    let destination = destination.parse().expect("an address");
    Frame::new(source, destination)
        .udp(4_000, 53, b"")
        .expect("a frame")
}

#[test]
fn a_ban_ends_on_time_without_anybody_lifting_it() -> Result<()> {
    let mut engines = engines()?;
    let frame = from("192.0.2.7".parse()?);
    assert_eq!(engines.judge(0, &frame), WithinLimits);
    engines.ban("192.0.2.7/32".parse()?, MINUTE)?;
    assert_eq!(engines.judge(0, &frame), Banned);
    assert_eq!(engines.judge(MINUTE - 1, &frame), Banned);
    assert_eq!(engines.judge(MINUTE, &frame), WithinLimits);
    Ok(())
}

#[test]
fn a_lifted_ban_holds_no_more() -> Result<()> {
    let mut engines = engines()?;
    let ban: IpNet = "2001:db8::/64".parse()?;
    engines.ban(ban, u64::MAX)?;
    assert_eq!(
        engines.judge(u64::MAX / 2, &from("2001:db8::9".parse()?)),
        Banned
    );
    assert!(engines.unban(ban)?);
    assert!(!engines.unban(ban)?);
    assert_eq!(
        engines.judge(u64::MAX / 2, &from("2001:db8::9".parse()?)),
        WithinLimits
    );
    Ok(())
}

/// A ban of any length holds from its first address to its last, and not beyond.
#[test]
fn a_ban_holds_for_its_prefix_and_no_more() -> Result<()> {
    let lengths = |base: &str, longest: u8| {
        let base: IpAddr = base.parse().expect("an address");
        (1..=longest).map(move |length| IpNet::new(base, length).expect("a length").trunc())
    };
    let mut engines = engines()?;
    for ban in lengths("172.21.77.5", 32).chain(lengths("2a02:db8:5:17::abcd", 128)) {
        engines.ban(ban, MINUTE)?;
        for inside in [ban.network(), ban.broadcast()] {
            let verdict = engines.judge(0, &from(inside));
            assert_eq!(verdict, Banned, "{inside} in {ban}");
        }
        for outside in [before(ban), behind(ban)].into_iter().flatten() {
            let verdict = engines.judge(0, &from(outside));
            assert_eq!(verdict, WithinLimits, "{outside} beside {ban}");
        }
        assert!(engines.unban(ban)?);
    }
    Ok(())
}

/// Nested bans hold independently.
#[test]
fn a_longer_ban_of_a_range_holds_when_that_of_an_address_has_ended() -> Result<()> {
    let mut engines = engines()?;
    engines.ban("198.51.100.9/32".parse()?, MINUTE)?;
    engines.ban("198.51.100.0/24".parse()?, 2 * MINUTE)?;
    assert_eq!(
        engines.judge(MINUTE, &from("198.51.100.9".parse()?)),
        Banned
    );
    assert_eq!(
        engines.judge(2 * MINUTE, &from("198.51.100.9".parse()?)),
        WithinLimits
    );
    Ok(())
}

/// The widest of nested bans counts hits, from its first packet on and across renewals. Only a ban in
/// force counts.
#[test]
fn hits_are_of_the_widest_ban_that_holds() -> Result<()> {
    let mut engines = engines()?;
    let (one, range): (IpNet, IpNet) = ("198.51.100.9/32".parse()?, "198.51.100.0/24".parse()?);
    let (frame, other) = (
        from("198.51.100.9".parse()?),
        from("198.51.100.77".parse()?),
    );
    let of = |packets| Hits {
        packets,
        bytes: packets * frame.len() as u64,
    };
    engines.ban(one, MINUTE)?;
    for packets in 1..=3 {
        assert_eq!(engines.judge(0, &frame), Banned);
        assert_eq!(engines.judge(0, &other), WithinLimits);
        assert_eq!(engines.hits(one)?, of(packets));
    }
    engines.ban(range, MINUTE)?;
    assert_eq!(engines.judge(1, &frame), Banned);
    assert_eq!(engines.judge(1, &other), Banned);
    assert_eq!((engines.hits(one)?, engines.hits(range)?), (of(3), of(2)));
    // The ban has ended and is renewed while it is still remembered.
    assert_eq!(engines.judge(MINUTE, &frame), WithinLimits);
    engines.ban(one, 3 * MINUTE)?;
    assert_eq!(engines.judge(2 * MINUTE, &frame), Banned);
    assert_eq!((engines.hits(one)?, engines.hits(range)?), (of(4), of(2)));
    // A lifted ban is forgotten, and counts no packet.
    assert!(engines.unban(one)?);
    assert_eq!(engines.judge(2 * MINUTE, &frame), WithinLimits);
    assert_eq!(engines.hits(one)?, of(0));
    engines.ban(one, 3 * MINUTE)?;
    assert_eq!(engines.hits(one)?, of(0));
    Ok(())
}

/// IPv6 prefixes of any length count their own sources.
#[test]
fn every_ban_counts_its_own_hits() -> Result<()> {
    let base: IpAddr = "2a02:db8:5:17::abcd".parse()?;
    let mut engines = engines()?;
    for length in 1..=128 {
        let ban = IpNet::new(base, length)?.trunc();
        engines.ban(ban, MINUTE)?;
        let inside = from(ban.broadcast());
        assert_eq!(engines.judge(0, &inside), Banned, "{ban}");
        let expected = Hits {
            packets: 1,
            bytes: inside.len() as u64,
        };
        assert_eq!(engines.hits(ban)?, expected, "{ban}");
        assert!(engines.unban(ban)?);
    }
    Ok(())
}

/// These bans set bits in most words of the filter. They still hold after others are lifted and the
/// filter is cleared.
#[test]
fn many_bans_hold_and_those_that_are_lifted_do_not() -> Result<()> {
    const BANS: u32 = 20_000;
    let mut engines = engines()?;
    let address = |number: u32| IpAddr::from(Ipv4Addr::from(number.wrapping_mul(0x9e37_79b1)));
    for number in 0..BANS {
        engines.ban(IpNet::from(address(number)), MINUTE)?;
    }
    for number in (0..BANS).filter(|number| number % 3 == 0) {
        assert!(engines.unban(IpNet::from(address(number)))?);
    }
    for is_cleared in [false, true] {
        if is_cleared {
            engines.clear_ban_filter()?;
        }
        for number in (0..BANS).step_by(7) {
            let expected = if number % 3 == 0 {
                WithinLimits
            } else {
                Banned
            };
            let verdict = engines.judge(u64::from(is_cleared), &from(address(number)));
            assert_eq!(verdict, expected, "{}, {is_cleared}", address(number));
        }
    }
    Ok(())
}

fn before(prefix: IpNet) -> Option<IpAddr> {
    Some(match prefix.network() {
        IpAddr::V4(first) => Ipv4Addr::from(u32::from(first).checked_sub(1)?).into(),
        IpAddr::V6(first) => Ipv6Addr::from(u128::from(first).checked_sub(1)?).into(),
    })
}

fn behind(prefix: IpNet) -> Option<IpAddr> {
    Some(match prefix.broadcast() {
        IpAddr::V4(last) => Ipv4Addr::from(u32::from(last).checked_add(1)?).into(),
        IpAddr::V6(last) => Ipv6Addr::from(u128::from(last).checked_add(1)?).into(),
    })
}
