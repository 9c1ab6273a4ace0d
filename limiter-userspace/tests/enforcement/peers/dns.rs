//! Unknown resolvers are told to retry over TCP; they do, and are known from then on.

use std::{net::IpAddr, thread, time::Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use testbed::{Limiter, Pair};

use super::{
    Defence, program, sent,
    server::{ADDRESS, RESOLVER, Server},
    spend, succeed,
};
use crate::{PACE, PATIENCE, pair, server_for};

/// After one token is spent, UDP queries of unproven sources are refused; other sources still have
/// tokens.
const CONFIGURATION: &str = "\
standing: {capacity: 4096, proven-by: handshake}
limits:
  Queries: {id: total, cost: packets, match: {protocol: udp, destination-port: 53},
    burst: 100, count: 1, period: 1h, deny: truncate,
    reserve: {familiar: 10%, fresh: 20%, retried: 99%, unknown: 99%}}
";

/// A DNS client program that queries one server over UDP, and over TCP if told to.
struct Client<'p> {
    pair: &'p Pair,
    program: &'static str,
    from: IpAddr,
}

impl Client<'_> {
    /// Asks for a name; returns the program's output.
    fn ask(&self, name: &str, options: &[&str]) -> Result<String> {
        let server = server_for(self.from)?;
        let mut command = program::command(&self.pair.client, self.program)?;
        let command = command.args(["-b", &self.from.to_string(), &format!("@{server}")]);
        let command = command.args([name, "A", "+time=3", "+retry=0"]);
        succeed(command.args(options))
    }
}

/// Returns whether the output says that the response came over this transport.
fn is_over(printed: &str, transport: &str) -> bool {
    printed.contains(&format!("({transport})"))
}

/// Returns whether the printed header has the flag for a truncated answer.
fn is_truncated(printed: &str) -> bool {
    let mut flags = printed.lines().filter_map(|line| {
        let line = line.to_ascii_lowercase();
        let flags = line.strip_prefix(";; flags: ")?.split(';').next()?;
        Some(flags.split(' ').any(|flag| flag == "tc"))
    });
    flags.next_back().is_some_and(|is_set| is_set)
}

/// Fails unless a handshake has proven a source.
fn assert_proven(limiter: &Limiter, source: IpAddr) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let known = limiter.show(&["trusted", &source.to_string(), "--json"])?;
        let known: Value = serde_json::from_str(&known)?;
        // During a shortage, as here, a newly proven source ranks as fresh.
        if known["why"] == "handshake" {
            ensure!(known["standing"] == "fresh", "{known:#}");
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "{known:#}");
        thread::sleep(PACE);
    }
}

/// Returns how many packets of proven sources passed the limit.
fn passed_fresh(limiter: &Limiter) -> Result<u64> {
    let status = limiter.status()?;
    let of_each = status["standing"]["limits"]["Queries"].as_array();
    let of_each = of_each.with_context(|| format!("no standings in {status:#}"))?;
    let fresh = of_each
        .iter()
        .find(|traffic| traffic["standing"] == "fresh");
    let passed = fresh.and_then(|traffic| traffic["passed_packets"].as_u64());
    passed.with_context(|| format!("no fresh sources in {status:#}"))
}

/// A program gets a truncated answer, asks over TCP, and is proven.
fn assert_comes_over_tcp(defence: &Defence, client: &Client<'_>) -> Result<()> {
    let limiter = &defence.limiter;
    let before = sent(limiter, "Queries", "truncate")?;
    let reported = client.ask("a.example.test", &["+ignore"])?;
    ensure!(
        is_truncated(&reported) && is_over(&reported, "UDP"),
        "{reported}"
    );
    ensure!(!reported.contains(ADDRESS), "{reported}");
    assert_eq!(sent(limiter, "Queries", "truncate")?, before + 1);

    let served = client.ask("b.example.test", &[])?;
    ensure!(
        served.contains(ADDRESS) && is_over(&served, "TCP"),
        "{served}"
    );
    assert_eq!(sent(limiter, "Queries", "truncate")?, before + 2);
    assert_proven(limiter, client.from)?;

    let passed = passed_fresh(limiter)?;
    let direct = client.ask("c.example.test", &["+ignore"])?;
    ensure!(
        !is_truncated(&direct) && is_over(&direct, "UDP"),
        "{direct}"
    );
    ensure!(direct.contains(ADDRESS), "{direct}");
    assert_eq!(sent(limiter, "Queries", "truncate")?, before + 2);
    assert_eq!(passed_fresh(limiter)?, passed + 1);
    Ok(())
}

/// A resolver's own clients notice nothing.
fn assert_resolves(pair: &Pair, defence: &Defence, from: IpAddr) -> Result<()> {
    let limiter = &defence.limiter;
    let (_unbound, port) = Server::unbound(pair, server_for(from)?, from)?;
    let resolve = |name: &str| {
        let mut dig = program::command(&pair.client, "dig")?;
        let dig = dig.args([&format!("@{RESOLVER}"), "-p", &port.to_string()]);
        let printed = succeed(dig.args([name, "A", "+time=5", "+tries=1"]))?;
        ensure!(printed.contains(ADDRESS), "{printed}");
        Ok(())
    };
    let before = sent(limiter, "Queries", "truncate")?;
    resolve("d.example.test")?;
    let reported = sent(limiter, "Queries", "truncate")?;
    assert_eq!(reported, before + 1);
    assert_proven(limiter, from)?;

    let passed = passed_fresh(limiter)?;
    resolve("e.example.test")?;
    assert_eq!(sent(limiter, "Queries", "truncate")?, reported);
    assert_eq!(passed_fresh(limiter)?, passed + 1);
    Ok(())
}

fn assert_serves(start: fn(&Pair, &str) -> Result<Defence>) -> Result<()> {
    let pair = pair()?;
    let _nsd = Server::nsd(&pair)?;
    let defence = start(&pair, CONFIGURATION)?;
    spend(&pair, |frame| frame.udp(1, 53, b"x"))?;
    // An IPv6 source is a whole /64.
    for (program, from) in [
        ("dig", ["10.77.0.2", "fd77:1:1::1"]),
        ("kdig", ["10.77.0.3", "fd77:1:1:2::1"]),
    ] {
        for from in from {
            let (pair, from) = (&pair, from.parse()?);
            let client = Client {
                pair,
                program,
                from,
            };
            assert_comes_over_tcp(&defence, &client)
                .with_context(|| format!("{program} from {from}"))?;
        }
    }
    for from in ["10.78.0.2", "fd77:1:1:3::1"] {
        assert_resolves(&pair, &defence, from.parse()?)
            .with_context(|| format!("unbound from {from}"))?;
    }
    defence.stop()
}

#[test]
fn resolvers_come_over_tcp_and_are_known() -> Result<()> {
    assert_serves(Defence::generic)
}

#[test]
fn a_driver_tells_them_too() -> Result<()> {
    assert_serves(Defence::native)
}
