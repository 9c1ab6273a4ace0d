//! Limits on handshakes: packets ask, and completed handshakes spend.

use std::net::IpAddr;

use anyhow::{Result, anyhow};
use limiter_common::{connection::Ends, packet::TcpState, reason::Reason};
use limiter_policy::{
    config::{self, Store},
    policy::Policy,
};
use testbed::Frame;

use crate::engine::Engines;

const SECOND: u64 = 1_000_000_000;

/// Clients, and the host's addresses.
const CLIENTS: [[&str; 2]; 2] = [
    ["192.0.2.7", "198.51.100.1"],
    ["2001:db8:1::7", "2001:db8:f::1"],
];

const STORES: [Store; 2] = [Store::Table, Store::Hash];

fn policy(text: &str) -> Result<Policy> {
    let config = config::parse(text, "test").map_err(|errors| anyhow!("{errors}"))?;
    Ok(config.policy)
}

/// A policy with a limit of two handshakes at once and one a second per client, and other limits.
fn two(rest: &str) -> Result<Policy> {
    policy(&format!(
        "limits: {{Web: {{id: ipAddress, cost: handshakes, burst: 2, count: 1, period: 1s, \
         match: {{destination-port: 443}}}}{rest}}}\n"
    ))
}

/// A client of the host's port 443.
struct Client {
    frame: Frame,
    ends: Ends,
    port: u16,
}

impl Client {
    fn new([client, own]: [&str; 2], port: u16) -> Result<Self> {
        let [client, own]: [IpAddr; 2] = [client.parse()?, own.parse()?];
        Ok(Self {
            frame: Frame::new(client, own),
            ends: Ends::new(&client.into(), 40_000, &own.into(), port),
            port,
        })
    }

    fn syn(&self) -> Result<Vec<u8>> {
        self.frame.tcp_syn(40_000, self.port, 1)
    }

    fn ack(&self) -> Result<Vec<u8>> {
        self.frame.tcp_ack(40_000, self.port, 2, 2)
    }
}

#[test]
fn packets_ask_and_handshakes_spend() -> Result<()> {
    for (ends, store) in CLIENTS.into_iter().zip(STORES) {
        let mut engines = Engines::with(&two("")?, store)?;
        let client = Client::new(ends, 443)?;
        for _ in 0..5 {
            assert_eq!(engines.judge(0, &client.syn()?), Reason::WithinLimits);
        }
        engines.complete(client.ends, 0)?;
        assert_eq!(engines.judge(0, &client.syn()?), Reason::WithinLimits);
        engines.complete(client.ends, 0)?;
        assert_eq!(engines.judge(0, &client.syn()?), Reason::OverLimit);
        // The last segment of a handshake that began before is also refused; no other segment is.
        engines.set_tcp_state(TcpState::New)?;
        assert_eq!(engines.judge(0, &client.ack()?), Reason::OverLimit);
        for state in [TcpState::Established, TcpState::None] {
            engines.set_tcp_state(state)?;
            assert_eq!(engines.judge(0, &client.ack()?), Reason::Unlimited);
        }
        engines.assert_same_state();
        assert_eq!(engines.judge(SECOND - 1, &client.syn()?), Reason::OverLimit);
        assert_eq!(engines.judge(SECOND, &client.syn()?), Reason::WithinLimits);
        engines.set_tcp_state(TcpState::New)?;
        assert_eq!(engines.judge(SECOND, &client.ack()?), Reason::WithinLimits);
        engines.assert_same_state();
        // Handshakes that the limit does not match spend none of its tokens.
        let other = Client::new(ends, 80)?;
        engines.complete(other.ends, SECOND)?;
        assert_eq!(engines.judge(SECOND, &client.syn()?), Reason::WithinLimits);
        assert_eq!(engines.judge(SECOND, &other.syn()?), Reason::Unlimited);
        engines.assert_same_state();
    }
    Ok(())
}

/// Handshakes in flight make a debt.
#[test]
fn more_than_there_is_may_be_spent() -> Result<()> {
    for store in STORES {
        let mut engines = Engines::with(&two("")?, store)?;
        let client = Client::new(CLIENTS[0], 443)?;
        for _ in 0..5 {
            engines.complete(client.ends, 0)?;
        }
        for (second, expected) in [(3, Reason::OverLimit), (4, Reason::WithinLimits)] {
            assert_eq!(engines.judge(second * SECOND, &client.syn()?), expected);
        }
        engines.assert_same_state();
    }
    Ok(())
}

/// If a limit on handshakes refuses, limits that packets spend charge nothing. No limit is asked twice.
#[test]
fn other_limits_go_on_beside_them() -> Result<()> {
    let rest = ", Syns: {id: ipAddress, cost: new-connections, burst: 4, count: 1, period: 1h}, \
                All: {id: total, cost: handshakes, burst: 3, count: 1, period: 1h}, \
                Packets: {id: total, cost: packets, burst: 1000, count: 1, period: 1h}";
    for store in STORES {
        let mut engines = Engines::with(&two(rest)?, store)?;
        let [one, other] = [CLIENTS[0], ["192.0.2.8", "198.51.100.1"]];
        let [one, other] = [Client::new(one, 443)?, Client::new(other, 443)?];
        for _ in 0..2 {
            assert_eq!(engines.judge(0, &one.syn()?), Reason::WithinLimits);
            engines.complete(one.ends, 0)?;
        }
        for _ in 0..4 {
            assert_eq!(engines.judge(0, &one.syn()?), Reason::OverLimit);
        }
        // The refused SYNs have left two of the four.
        for _ in 0..2 {
            assert_eq!(engines.judge(2 * SECOND, &one.syn()?), Reason::WithinLimits);
        }
        assert_eq!(engines.judge(2 * SECOND, &one.syn()?), Reason::OverLimit);
        // One is left of all.
        assert_eq!(
            engines.judge(2 * SECOND, &other.syn()?),
            Reason::WithinLimits
        );
        engines.complete(other.ends, 2 * SECOND)?;
        assert_eq!(engines.judge(2 * SECOND, &other.syn()?), Reason::OverLimit);
        engines.assert_same_state();
    }
    Ok(())
}

#[test]
fn overrides_lists_and_modes_are_those_of_any_limit() -> Result<()> {
    let lists = "lists: [{name: us, cidr: 192.0.2.9}, {name: bad, cidr: 192.0.2.10}]\n\
                 overrides: {Web:192.0.2.8: {burst: 3, count: 1, period: 1s}}\n";
    let text = format!(
        "{lists}limits: {{Web: {{id: ipAddress, cost: handshakes, burst: 1, count: 1, period: 1s, \
         exclude: [us], block: [bad]}}}}\n"
    );
    for store in STORES {
        let mut engines = Engines::with(&policy(&text)?, store)?;
        for (source, expected) in [
            (
                "192.0.2.7",
                [Reason::WithinLimits, Reason::OverLimit, Reason::OverLimit],
            ),
            (
                "192.0.2.8",
                [
                    Reason::WithinLimits,
                    Reason::WithinLimits,
                    Reason::WithinLimits,
                ],
            ),
            ("192.0.2.9", [Reason::Unlimited; 3]),
            ("192.0.2.10", [Reason::BlockedList; 3]),
        ] {
            let client = Client::new([source, "198.51.100.1"], 443)?;
            for expected in expected {
                assert_eq!(engines.judge(0, &client.syn()?), expected, "{source}");
                engines.complete(client.ends, 0)?;
            }
        }
        engines.assert_same_state();
        let text = "limits: {Web: {id: ipAddress, cost: handshakes, mode: observe, burst: 1, count: 1, \
                    period: 1s}}\n";
        let mut engines = Engines::with(&policy(text)?, store)?;
        let client = Client::new(CLIENTS[0], 443)?;
        for would_drop in [0, 1, 1] {
            let verdict = engines.verdict(0, &client.syn()?);
            assert_eq!(verdict.reason, Reason::WithinLimits);
            assert_eq!(verdict.would_drop, would_drop);
            engines.complete(client.ends, 0)?;
        }
        engines.assert_same_state();
    }
    Ok(())
}

/// Unknown sources leave the last handshakes to the others.
#[test]
fn handshakes_are_kept_for_known_sources() -> Result<()> {
    let text = "limits: {All: {id: total, cost: handshakes, burst: 4, count: 1, period: 1h, \
                reserve: {unknown: 50%}}}\nlists: [{name: us, cidr: 192.0.2.9}]\n\
                standing: {proven: [us]}\n";
    for store in STORES {
        let mut engines = Engines::with(&policy(text)?, store)?;
        let stranger = Client::new(CLIENTS[0], 443)?;
        let known = Client::new(["192.0.2.9", "198.51.100.1"], 443)?;
        for _ in 0..2 {
            assert_eq!(engines.judge(0, &stranger.syn()?), Reason::WithinLimits);
            engines.complete(stranger.ends, 0)?;
        }
        assert_eq!(engines.judge(0, &stranger.syn()?), Reason::Reserved);
        for _ in 0..2 {
            assert_eq!(engines.judge(0, &known.syn()?), Reason::WithinLimits);
            engines.complete(known.ends, 0)?;
        }
        assert_eq!(engines.judge(0, &known.syn()?), Reason::OverLimit);
        engines.assert_same_state();
    }
    Ok(())
}
