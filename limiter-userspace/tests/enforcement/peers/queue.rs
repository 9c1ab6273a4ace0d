//! nginx behind a limit on connections, and five hundred clients: the two rules in the documentation of Traffic
//! Server's plugin, 128 connections with a queue of 256, and 256 connections without a queue.

use std::{
    io::{ErrorKind::TimedOut, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    sync::RwLock,
    thread::{self, ScopedJoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use limiter_datapath::kernel::possible_cpus;
use serde_json::Value;
use testbed::{Limiter, Pair};

use super::{server::Server, start};
use crate::pair;

const CLIENTS: usize = 500;

/// At this rate, nginx takes about a second for the file.
const FILE: (&str, usize) = ("page", 6000);
const SLOWLY: &str = "limit_rate 3000;";

/// Far longer than all clients together take.
const LONG: Duration = Duration::from_mins(3);

/// The stack size of a client's thread.
const STACK: usize = 64 << 10;

fn policy(limit: u64, more: &str) -> String {
    format!(
        "limits: {{Web: {{id: total, cost: connections, limit: {limit}, metrics: {{}}{more}, match: \
         {{protocol: tcp, destination-port: 80}}}}}}\n"
    )
}

/// Connects, waits for the gate to open, and fetches the file; returns how long that took.
fn fetch(pair: &Pair, server: SocketAddr, gate: &RwLock<()>) -> Result<Duration> {
    let (name, bytes) = FILE;
    let began = Instant::now();
    let mut stream = loop {
        match pair
            .client
            .enter(|| Ok(TcpStream::connect_timeout(&server, LONG)))?
        {
            // The client's kernel gives up after two minutes, so the client tries again.
            Err(error) if error.kind() == TimedOut && began.elapsed() < LONG => {}
            connected => break connected?,
        }
    };
    drop(gate.read());
    stream.set_read_timeout(Some(LONG))?;
    write!(stream, "GET /{name} HTTP/1.0\r\n\r\n")?;
    let mut response = Vec::new();
    stream.read_to_end(&mut response)?;
    let is_whole = response.starts_with(b"HTTP/1.1 200 ") && response.len() > bytes;
    ensure!(is_whole, "{}", String::from_utf8_lossy(&response));
    Ok(began.elapsed())
}

/// Starts all clients at once. They fetch the file as soon as there are too many of them. Returns the longest time, and
/// the largest number of open connections.
fn crowd(
    pair: &Pair,
    limiter: &Limiter,
    are_too_many: impl Fn(u64, &Value) -> bool,
) -> Result<(Duration, u64)> {
    let server: SocketAddr = "10.77.0.1:80".parse()?;
    let gate = RwLock::new(());
    thread::scope(|scope| {
        // An error opens the gate, too.
        let mut closed = gate.write().ok();
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let client = thread::Builder::new().stack_size(STACK);
                client.spawn_scoped(scope, || fetch(pair, server, &gate))
            })
            .collect::<Result<_, _>>()?;
        let mut most = 0;
        while !clients.iter().all(ScopedJoinHandle::is_finished) {
            let counted = limiter.status()?["connections"]["counted"].as_u64();
            most = most.max(counted.context("nothing is counted")?);
            if closed.is_some() && are_too_many(most, &stats(limiter)?) {
                closed = None;
            }
            // Listing this many connections takes CPU time.
            thread::sleep(Duration::from_millis(250));
        }
        let took = clients
            .into_iter()
            .map(|client| client.join().ok().context("a client panicked")?);
        let longest = took.collect::<Result<Vec<_>>>()?.into_iter().max();
        Ok((longest.context("no client")?, most))
    })
}

/// Returns the values of the plugin's metrics.
fn stats(limiter: &Limiter) -> Result<Value> {
    let stats = limiter.show(&["stats", "--flat", "--json"])?;
    Ok(serde_json::from_str(&stats)?)
}

#[test]
fn the_plugins_rule_with_a_queue() -> Result<()> {
    let pair = pair()?;
    let _server = Server::nginx_with(&pair, &[FILE], SLOWLY)?;
    let limiter = start(&pair, &policy(128, ", queue: {size: 256}"), "generic")?;
    let (longest, most) = crowd(&pair, &limiter, |_, stats| {
        stats["plugin.rate_limiter.sni.Web.rejected"] != 0
    })?;
    let stats = stats(&limiter)?;
    let of = |metric: &str| {
        let number = stats[format!("plugin.rate_limiter.sni.Web.{metric}")].as_u64();
        number.with_context(|| format!("no {metric} in {stats}"))
    };
    let (queued, resumed) = (of("queued")?, of("resumed")?);
    let (expired, rejected) = (of("expired")?, of("rejected")?);
    println!(
        "all within {longest:?}, at most {most} at once; {queued} queued, {resumed} resumed, {expired} \
         expired, {rejected} rejected"
    );
    ensure!(
        most <= 128 + 64 * u64::from(possible_cpus()),
        "{most} at once"
    );
    // Five hundred clients come for 128 slots and 256 tickets: most wait, and some have to try again to get a ticket.
    ensure!(queued >= 256 && rejected > 0, "{stats}");
    ensure!(resumed >= queued / 2 && resumed <= queued, "{stats}");
    Ok(())
}

#[test]
fn the_plugins_rule_without_a_queue() -> Result<()> {
    let pair = pair()?;
    let _server = Server::nginx_with(&pair, &[FILE], SLOWLY)?;
    let limiter = start(&pair, &policy(256, ""), "generic")?;
    let (longest, most) = crowd(&pair, &limiter, |most, _| most >= 256)?;
    let stats = stats(&limiter)?;
    println!("all within {longest:?}, at most {most} at once");
    ensure!(
        most <= 256 + 64 * u64::from(possible_cpus()),
        "{most} at once"
    );
    for metric in ["queued", "resumed", "expired"] {
        let name = format!("plugin.rate_limiter.sni.Web.{metric}");
        ensure!(stats[&name] == 0, "{name} in {stats}");
    }
    Ok(())
}
