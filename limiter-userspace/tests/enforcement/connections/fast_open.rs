//! TCP Fast Open: the first segment makes a socket that a server accepts. It counts from the
//! handshake's end, and never if there is none.

use std::{
    io::Read as _,
    net::{Shutdown, TcpStream},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use testbed::{Namespace, Pair};

use super::{
    CLIENT, Kind, LIMIT, PATIENCE, Server, assert_counted, counted,
    soak::{allow_all, listed},
    start,
};
use crate::{pair, syn_cookies::set, wait};

fn nft(namespace: &Namespace, rules: &str) -> Result<()> {
    let output = namespace.command("nft").arg(rules).output()?;
    ensure!(output.status.success(), "{output:?}");
    Ok(())
}

/// Has the client hear nothing of the server, so that it ends no handshake.
fn be_deaf(pair: &Pair) -> Result<()> {
    let rules = "table inet deaf { chain input { type filter hook input priority 0; tcp sport 7002 \
                 drop; }; }";
    nft(&pair.client, rules)
}

fn hear(pair: &Pair) -> Result<()> {
    nft(&pair.client, "delete table inet deaf")
}

/// Returns how many handshakes the server has begun and not ended.
fn beginning(namespace: &Namespace) -> Result<usize> {
    let arguments = ["-H", "-t", "-n", "state", "syn-recv", "sport = :7002"];
    let output = namespace.command("ss").args(arguments).output()?;
    ensure!(output.status.success(), "{output:?}");
    Ok(String::from_utf8(output.stdout)?.lines().count())
}

/// Returns whether the client's kernel has a cookie. A SYN that is sent again, on a slow machine, asks for
/// none.
fn has_cookie(namespace: &Namespace) -> Result<bool> {
    let output = namespace
        .command("ip")
        .args(["tcp_metrics", "show"])
        .output()?;
    ensure!(output.status.success(), "{output:?}");
    Ok(String::from_utf8(output.stdout)?.contains("fo_cookie"))
}

/// Returns a pair with a server, the policy, and a client that has a cookie.
fn prepare() -> Result<(Pair, Server, String)> {
    let pair = pair()?;
    allow_all(&pair)?;
    let server = Kind::FastOpen.serve(&pair.server)?.context("a listener")?;
    let end = Instant::now() + PATIENCE;
    while !has_cookie(&pair.client)? {
        ensure!(Instant::now() < end, "the client has got no cookie");
        drop((Kind::FastOpen.connect(&pair, CLIENT)?, server.accept()?));
    }
    let policy = format!(
        "limits: {{Web: {{id: ipAddress, cost: connections, limit: {LIMIT}, match: {{protocol: \
         tcp, destination-port: {}}}}}}}\n",
        Kind::FastOpen.port()
    );
    Ok((pair, server, policy))
}

/// Opens connections that the server has accepted, while the client receives nothing.
fn begin(pair: &Pair, server: &Server, count: usize) -> Result<Vec<(TcpStream, TcpStream)>> {
    let connections = (0..count).map(|number| {
        let client = Kind::FastOpen.connect(pair, CLIENT)?;
        let serving = server
            .accept()
            .with_context(|| format!("handshake {number}"))?;
        Ok((client, serving))
    });
    connections.collect()
}

/// How many handshakes begin while there is room.
const BEGUN: usize = 4 * LIMIT;

#[test]
fn what_opens_fast_counts_once_its_handshake_has_ended() -> Result<()> {
    let (pair, server, policy) = prepare()?;
    let limiter = start(&pair, &policy)?;
    be_deaf(&pair)?;
    let open = begin(&pair, &server, BEGUN)?;
    ensure!(beginning(&pair.server)? == BEGUN);
    ensure!(counted(&limiter)? == 0, "a first segment is counted");
    hear(&pair)?;
    // Both ends repeat segments that the client has not received. The limit's connections are
    // established, and perhaps one more, if two last ACKs come at the same moment.
    wait(|| Ok(counted(&limiter)? >= LIMIT as u64))?;
    // Long enough for another repetition.
    thread::sleep(Duration::from_secs(2));
    let open_now = listed(&pair.server)?;
    println!("of {BEGUN} begun {open_now} are open, where {LIMIT} may be");
    ensure!(
        (LIMIT as u64..=2 * LIMIT as u64).contains(&open_now),
        "{open_now} are open"
    );
    assert_counted(&limiter, open_now)?;
    // A first segment with a cookie finds no room.
    let client = Kind::FastOpen.connect(&pair, CLIENT)?;
    ensure!(server.accept().is_err(), "one more is let in");
    // Else it sends its SYN again, and finds room.
    drop(client);
    drop(open);
    assert_counted(&limiter, 0)
}

/// Reads the data of the first segment.
fn served(mut serving: TcpStream) -> Result<TcpStream> {
    ensure!(serving.read(&mut [0; 2])? == 1);
    Ok(serving)
}

/// Such a connection may never be in the state of an established one.
#[test]
fn what_the_server_ends_before_the_handshake_counts_once_the_client_is_there() -> Result<()> {
    let (pair, server, policy) = prepare()?;
    let limiter = start(&pair, &policy)?;
    be_deaf(&pair)?;
    let (client, serving) = begin(&pair, &server, 1)?.pop().context("it is open")?;
    let serving = served(serving)?;
    serving.shutdown(Shutdown::Write)?;
    hear(&pair)?;
    assert_counted(&limiter, 1)?;
    ensure!(listed(&pair.server)? == 1);
    drop((client, serving));
    assert_counted(&limiter, 0)
}

#[test]
fn what_opens_fast_and_never_ends_its_handshake_leaves_no_count() -> Result<()> {
    let (pair, server, policy) = prepare()?;
    set(&pair.server, "tcp_synack_retries", "1")?;
    set(&pair.server, "tcp_orphan_retries", "1")?;
    let limiter = start(&pair, &policy)?;
    be_deaf(&pair)?;
    let mut waits = Vec::new();
    for (number, (client, serving)) in begin(&pair, &server, 4 * LIMIT)?.into_iter().enumerate() {
        drop(client);
        // Some wait. The server has served others, and resets them if it has unread data.
        match number % 3 {
            0 => waits.push(serving),
            1 => drop(serving),
            _ => drop(served(serving)?),
        }
    }
    wait(|| {
        let all = [counted(&limiter)?, listed(&pair.server)?];
        Ok(all == [0, 0] && beginning(&pair.server)? == 0)
    })?;
    hear(&pair)?;
    drop(waits);
    let _open = (Kind::FastOpen.connect(&pair, CLIENT)?, server.accept()?);
    assert_counted(&limiter, 1)
}
