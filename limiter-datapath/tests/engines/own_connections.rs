//! Packets of connections that the host began: in both engines, limits and sieves do not refuse
//! them.

use std::net::IpAddr;

use anyhow::{Result, anyhow};
use limiter_common::{connection::Ends, reason::Reason};
use limiter_policy::{
    config::{self, Store},
    policy::Policy,
};
use testbed::Frame;

use crate::engine::Engines;

/// A server, and the host that connects to it.
const ENDS: [[&str; 2]; 2] = [
    ["192.0.2.7", "198.51.100.1"],
    ["2001:db8:1::7", "2001:db8:f::1"],
];

const SERVICE: u16 = 443;
const OWN: u16 = 40_000;

fn policy(text: &str) -> Result<Policy> {
    let config = config::parse(text, "test").map_err(|errors| anyhow!("{errors}"))?;
    Ok(config.policy)
}

/// Two packets spend all tokens of a source.
fn per_address(rest: &str) -> Result<Policy> {
    policy(&format!(
        "limits: {{A: {{id: ipAddress, cost: packets, burst: 2, count: 1, period: 1h}}}}\n{rest}"
    ))
}

/// A connection that the host began, and packets of its peer.
struct Scene {
    engines: Engines,
    frame: Frame,
    time: u64,
}

impl Scene {
    fn new(policy: &Policy, store: Store, [peer, own]: [&str; 2]) -> Result<Self> {
        let [peer, own]: [IpAddr; 2] = [peer.parse()?, own.parse()?];
        let mut engines = Engines::with(policy, store)?;
        engines.begin(Ends::new(&peer.into(), SERVICE, &own.into(), OWN))?;
        Ok(Self {
            engines,
            frame: Frame::new(peer, own),
            time: 0,
        })
    }

    fn judge(&mut self, frame: &[u8]) -> Reason {
        self.time += 1;
        self.engines.judge(self.time, frame)
    }

    /// The outcome of a segment from one port to another, other than the first.
    fn segment(&mut self, from: u16, to: u16) -> Result<Reason> {
        let segment = self.frame.tcp_ack(from, to, 1, 1)?;
        Ok(self.judge(&segment))
    }
}

#[test]
fn a_limit_refuses_none_of_their_packets() -> Result<()> {
    for (ends, store) in ENDS.into_iter().zip([Store::Table, Store::Hash]) {
        let mut scene = Scene::new(&per_address("")?, store, ends)?;
        for _ in 0..2 {
            assert_eq!(scene.segment(SERVICE, OWN)?, Reason::WithinLimits);
        }
        for _ in 0..3 {
            assert_eq!(scene.segment(SERVICE, OWN)?, Reason::OwnConnection);
        }
        // None of these belongs to a connection that the host began.
        for (from, to) in [(SERVICE, OWN + 1), (SERVICE + 1, OWN), (OWN, SERVICE)] {
            assert_eq!(scene.segment(from, to)?, Reason::OverLimit);
        }
        let first = scene.frame.tcp_syn(SERVICE, OWN, 1)?;
        assert_eq!(scene.judge(&first), Reason::OverLimit);
        let udp = scene.frame.udp(SERVICE, OWN, &[0; 9])?;
        assert_eq!(scene.judge(&udp), Reason::OverLimit);
        scene.engines.assert_same_state();
    }
    Ok(())
}

#[test]
fn they_are_limited_where_the_policy_says_so() -> Result<()> {
    for ends in ENDS {
        let policy = per_address("own-connections: limit")?;
        let mut scene = Scene::new(&policy, Store::Table, ends)?;
        for _ in 0..2 {
            assert_eq!(scene.segment(SERVICE, OWN)?, Reason::WithinLimits);
        }
        assert_eq!(scene.segment(SERVICE, OWN)?, Reason::OverLimit);
        scene.engines.assert_same_state();
    }
    Ok(())
}

/// Bans and lists are an operator's decision: they hold.
#[test]
fn bans_and_lists_hold() -> Result<()> {
    for ends in ENDS {
        let mut scene = Scene::new(&per_address("")?, Store::Table, ends)?;
        let peer = ends[0].parse::<IpAddr>()?;
        scene.engines.ban(peer.into(), u64::MAX)?;
        assert_eq!(scene.segment(SERVICE, OWN)?, Reason::Banned);
        scene.engines.assert_same_state();
        let blocked = per_address(&format!("block: {peer}"))?;
        let mut scene = Scene::new(&blocked, Store::Table, ends)?;
        assert_eq!(scene.segment(SERVICE, OWN)?, Reason::BlockedList);
        scene.engines.assert_same_state();
    }
    Ok(())
}

/// A reserve refuses before any limit is charged; that refusal does not hold for these packets
/// either.
#[test]
fn a_reserve_refuses_none_of_them() -> Result<()> {
    let policy = policy(
        "limits: {A: {id: total, cost: packets, burst: 4, count: 1, period: 1h, \
         reserve: {unknown: 3}}}",
    )?;
    for ends in ENDS {
        let mut scene = Scene::new(&policy, Store::Table, ends)?;
        assert_eq!(scene.segment(SERVICE, OWN)?, Reason::WithinLimits);
        for _ in 0..3 {
            assert_eq!(scene.segment(SERVICE, OWN)?, Reason::OwnConnection);
        }
        assert_eq!(scene.segment(SERVICE, OWN + 1)?, Reason::Reserved);
        scene.engines.assert_same_state();
    }
    Ok(())
}

/// An observing limit counts the packets that it would drop if it enforced; it would not drop
/// these.
#[test]
fn a_limit_that_observes_would_drop_none_of_them() -> Result<()> {
    let policy = policy(
        "limits: {A: {id: ipAddress, cost: packets, burst: 1, count: 1, period: 1h, \
         mode: observe}}",
    )?;
    for ends in ENDS {
        let mut scene = Scene::new(&policy, Store::Table, ends)?;
        assert_eq!(scene.segment(SERVICE, OWN)?, Reason::WithinLimits);
        let own = scene.frame.tcp_ack(SERVICE, OWN, 1, 1)?;
        let verdict = scene.engines.verdict(2, &own);
        assert_eq!(verdict.reason, Reason::OwnConnection);
        assert_eq!(verdict.matched, 0);
        let other = scene.frame.tcp_ack(SERVICE, OWN + 1, 1, 1)?;
        let verdict = scene.engines.verdict(3, &other);
        assert_eq!(
            (verdict.reason, verdict.would_drop),
            (Reason::WithinLimits, 1)
        );
        scene.engines.assert_same_state();
    }
    Ok(())
}
