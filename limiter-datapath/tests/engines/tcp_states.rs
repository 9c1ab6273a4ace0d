//! Limits that count segments by the state of their connection: both engines ask for it once.

use std::net::IpAddr;

use anyhow::{Result, anyhow};
use limiter_common::{packet::TcpState, reason::Reason};
use limiter_policy::{
    config::{self, Store},
    policy::Policy,
};
use testbed::Frame;

use crate::engine::Engines;

const SOURCES: [[&str; 2]; 2] = [
    ["192.0.2.7", "198.51.100.1"],
    ["2001:db8:1::7", "2001:db8:f::1"],
];

const PORTS: [u16; 2] = [40_000, 443];

fn policy(text: &str) -> Result<Policy> {
    let config = config::parse(text, "test").map_err(|errors| anyhow!("{errors}"))?;
    Ok(config.policy)
}

/// A limit of one packet an hour on segments of connections in `states`.
fn limit(states: &str, rest: &str) -> String {
    format!(
        "limits: {{Segments: {{id: ipAddress, cost: packets, burst: 1, count: 1, period: 1h, \
         match: {{state: {states}}}{rest}}}}}\n"
    )
}

/// A source that sends segments.
struct Scene {
    engines: Engines,
    frame: Frame,
    time: u64,
}

impl Scene {
    fn new(policy: &Policy, store: Store, [source, own]: [&str; 2]) -> Result<Self> {
        let [source, own]: [IpAddr; 2] = [source.parse()?, own.parse()?];
        Ok(Self {
            engines: Engines::with(policy, store)?,
            frame: Frame::new(source, own),
            time: 0,
        })
    }

    fn judge(&mut self, frame: &[u8]) -> Reason {
        self.time += 1;
        self.engines.judge(self.time, frame)
    }

    /// The outcome of a segment other than a SYN, of a connection in that state.
    fn segment(&mut self, state: TcpState) -> Result<Reason> {
        self.engines.set_tcp_state(state)?;
        let segment = self.frame.tcp_ack(PORTS[0], PORTS[1], 1, 1)?;
        Ok(self.judge(&segment))
    }

    fn syn(&mut self) -> Result<Reason> {
        let syn = self.frame.tcp_syn(PORTS[0], PORTS[1], 1)?;
        Ok(self.judge(&syn))
    }
}

#[test]
fn only_segments_of_those_states_are_counted() -> Result<()> {
    for store in [Store::Table, Store::Hash] {
        for (states, counted) in [
            ("none", &[TcpState::None][..]),
            ("established", &[TcpState::Established]),
            ("[new, none]", &[TcpState::New, TcpState::None]),
        ] {
            let mut scene = Scene::new(&policy(&limit(states, ""))?, store, SOURCES[0])?;
            for [source, own] in SOURCES {
                scene.frame = Frame::new(source.parse()?, own.parse()?);
                let mut reasons = vec![Reason::OverLimit, Reason::WithinLimits];
                for state in TcpState::ALL.into_iter().chain(TcpState::ALL) {
                    let reason = scene.segment(state)?;
                    if counted.iter().any(|one| state.is_counted_by(*one)) {
                        let expected = reasons.pop().unwrap_or(Reason::OverLimit);
                        assert_eq!(reason, expected, "{states}: {state:?}");
                    } else {
                        assert_eq!(reason, Reason::Unlimited, "{states}: {state:?}");
                    }
                }
                // The first segment begins a connection, regardless of the socket that it would
                // find.
                let expected = if counted.contains(&TcpState::New) {
                    Reason::OverLimit
                } else {
                    Reason::Unlimited
                };
                for state in TcpState::ALL {
                    scene.engines.set_tcp_state(state)?;
                    assert_eq!(scene.syn()?, expected, "{states}");
                }
                // Other protocols have no connection.
                let udp = scene.frame.udp(PORTS[0], PORTS[1], &[0; 9])?;
                assert_eq!(scene.judge(&udp), Reason::Unlimited, "{states}");
            }
            scene.engines.assert_same_state();
        }
    }
    Ok(())
}

#[test]
fn a_limit_that_blocks_drops_only_what_it_counts() -> Result<()> {
    let text = format!(
        "lists: [{{name: bad, cidr: 192.0.2.0/24}}]\n{}",
        limit("none", ", block: [bad]")
    );
    let mut scene = Scene::new(&policy(&text)?, Store::Table, SOURCES[0])?;
    assert_eq!(scene.segment(TcpState::None)?, Reason::BlockedList);
    assert_eq!(scene.segment(TcpState::Established)?, Reason::Unlimited);
    assert_eq!(scene.syn()?, Reason::Unlimited);
    Ok(())
}

/// The stages of standing and of states leave limits one after the other.
#[test]
fn states_and_standings_are_both_asked_for() -> Result<()> {
    let text = "limits: {Segments: {id: ipAddress, cost: packets, burst: 1, count: 1, period: 1h, \
                match: {state: none, standing: unknown}}}\nstanding: {}\n";
    let mut scene = Scene::new(&policy(text)?, Store::Table, SOURCES[0])?;
    assert_eq!(scene.segment(TcpState::New)?, Reason::Unlimited);
    assert_eq!(scene.segment(TcpState::None)?, Reason::WithinLimits);
    assert_eq!(scene.segment(TcpState::Established)?, Reason::Unlimited);
    assert_eq!(scene.segment(TcpState::None)?, Reason::OverLimit);
    scene.engines.assert_same_state();
    Ok(())
}
