//! After the same packets and events at the same times, both engines have the same records of all
//! sources.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use anyhow::{Result, anyhow};
use fastrand::Rng;
use limiter_common::{
    reason::Reason,
    standing::{Event, Standing},
};
use limiter_policy::{config, policy::Policy};
use testbed::Frame;

use crate::engine::{Engines, START};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

const POLICIES: u64 = 12;
const STEPS: u32 = 1_500;

fn policy(text: &str) -> Result<Policy> {
    let config = config::parse(text, "test").map_err(|errors| anyhow!("{errors}"))?;
    Ok(config.policy)
}

/// One of some sources; several of them are in one IPv6 prefix.
fn source(rng: &mut Rng, of_each: u32) -> IpAddr {
    let number = rng.u32(..of_each);
    if rng.bool() {
        Ipv4Addr::from(0x0a00_0000 + number).into()
    } else {
        let prefix = u128::from(number % 7 + 1) << 64;
        Ipv6Addr::from(0x2001_0db8 << 96 | prefix | u128::from(number)).into()
    }
}

/// A time between two packets: within a burst, until a retry, between two visits, or longer than a
/// shortage.
fn pause(rng: &mut Rng) -> u64 {
    match rng.u32(..400) {
        0 => rng.u64(..200) * SECOND,
        1..10 => rng.u64(..15) * SECOND,
        10..30 => rng.u64(..1_500) * MS,
        _ => rng.u64(..10) * MS,
    }
}

fn event(rng: &mut Rng, now: u64) -> Event {
    match rng.u32(..5) {
        0 => Event::Untrust,
        1 => Event::Trust {
            until_ns: (now + rng.u64(..60) * SECOND).saturating_sub(2 * SECOND),
        },
        2 => Event::Retry,
        _ => Event::Handshake,
    }
}

#[test]
fn kernel_and_native_know_the_same() -> Result<()> {
    let mut seen = BTreeMap::<&str, u32>::new();
    for seed in 0..POLICIES {
        let rng = &mut Rng::with_seed(seed);
        let (count, apart) = (rng.u32(1..4), rng.u32(2..10));
        // A limit on sources of some standings has all sources looked up.
        let (recorded, matching) = if seed % 2 == 0 {
            (u64::MAX, "match: {standing: [retried, unknown]}")
        } else {
            (seed / 2, "")
        };
        let policy = policy(&format!(
            "limits:
  all: {{id: total, cost: packets, count: 20, period: 1s, burst: 60, reserve: {{familiar: 2, fresh: 10, \
             retried: 20, unknown: 40}}}}
  new: {{id: ipAddress, cost: packets, count: 1, period: 1s, burst: 9, {matching}}}
standing: {{capacity: 1024, remember: 2m, visits: {{count: {count}, apart: {apart}s}}}}
"
        ))?;
        let mut engines = Engines::recording(&policy, recorded)?;
        let mut offset = 0;
        for _ in 0..STEPS {
            offset += pause(rng);
            let from = source(rng, 60);
            if rng.u32(..20) == 0 {
                let standing = engines.record_event(offset, from, event(rng, START + offset))?;
                *seen.entry(standing.name()).or_default() += 1;
                continue;
            }
            let to: IpAddr = match from {
                IpAddr::V4(_) => Ipv4Addr::new(192, 0, 2, 1).into(),
                IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 1).into(),
            };
            let verdict = engines.verdict(offset, &Frame::new(from, to).udp(9, 53, b"x")?);
            let standing = verdict.standing().map_or("unasked", Standing::name);
            *seen.entry(standing).or_default() += 1;
            if verdict.reason == Reason::Reserved {
                *seen.entry("for a reserve").or_default() += 1;
            }
        }
        assert!(engines.assert_same_standing()? > 10);
        engines.assert_same_state();
    }
    for outcome in [
        "proven",
        "familiar",
        "fresh",
        "retried",
        "unknown",
        "unasked",
        "for a reserve",
    ] {
        assert!(
            seen.get(outcome).is_some_and(|times| *times > 50),
            "{outcome}: {seen:?}"
        );
    }
    Ok(())
}

/// Many more sources than there is room for.
#[test]
fn kernel_and_native_forget_the_same() -> Result<()> {
    let rng = &mut Rng::with_seed(9);
    let policy = policy(
        "limits: {all: {id: total, cost: packets, count: 9, period: 1h, burst: 9000, reserve: {unknown: 100}}}
standing: {capacity: 1024}
",
    )?;
    let engines = Engines::new(&policy)?;
    let mut offset = 0;
    for _ in 0..20_000 {
        offset += rng.u64(..20) * SECOND;
        let from = source(rng, 1 << 24);
        engines.record_event(offset, from, event(rng, START + offset))?;
    }
    let known = engines.assert_same_standing()?;
    let room = 4 * engines.tables().features.standing.lines as usize;
    assert!(known > room / 2 && known <= room, "{known} of {room}");
    Ok(())
}
