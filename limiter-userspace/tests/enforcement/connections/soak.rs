//! Many connections of every kind, ended in every way: afterwards no closed connection is still
//! counted.

mod end;
pub(super) mod kind;

use std::{
    collections::VecDeque,
    env, fs, thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use testbed::{Limiter, Namespace, Pair};

use self::{
    end::{Ends, Open, VANISHES, WAYS},
    kind::Kind,
};
use super::{CLIENT, CLIENT_V6, PATIENCE, Server, counted, start};
use crate::{pair, syn_cookies::set};

/// The number of connections, unless `LIMITER_CONNECTIONS` gives another one.
const COUNT: usize = 3_000;

/// How many of them are open at a time.
const AT_A_TIME: usize = 200;

/// The addresses of clients that will vanish without a FIN.
const VANISHING: [&str; 2] = ["10.77.0.3", "fd77:1:1:2::1"];

/// `tcp_fastopen`: on for clients and for every listening socket.
const FAST_OPEN: &str = "1027";

/// Enables all kinds of connections, and lets ports be reused soon.
pub(super) fn allow_all(pair: &Pair) -> Result<()> {
    for namespace in [&pair.client, &pair.server] {
        set(namespace, "tcp_max_tw_buckets", "0")?;
        set(namespace, "tcp_fastopen", FAST_OPEN)?;
    }
    Ok(())
}

/// Gives the client's connections a second subflow, from another of its addresses.
pub(super) fn add_subflows(pair: &Pair, from: &str) -> Result<()> {
    let endpoint = ["mptcp", "endpoint", "add", from, "subflow"];
    pair.client.ip(&endpoint)?;
    for namespace in [&pair.client, &pair.server] {
        namespace.ip(&["mptcp", "limits", "set", "subflows", "2"])?;
    }
    Ok(())
}

/// Returns how many connections `ss` lists in the states from established to closed.
pub(super) fn listed(namespace: &Namespace) -> Result<u64> {
    let ports = Kind::ALL.map(|kind| format!("sport = :{}", kind.port()));
    let filter = format!("( {} )", ports.join(" or "));
    let arguments = ["-H", "-t", "-n", "state", "connected", &filter];
    let output = namespace.command("ss").args(arguments).output()?;
    ensure!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout)?;
    let open = |line: &&str| !line.starts_with("TIME-WAIT") && !line.starts_with("SYN-RECV");
    Ok(text.lines().filter(open).count() as u64)
}

/// Fails unless the limiter soon counts as many connections as `ss` lists; returns the number.
fn assert_as_listed(limiter: &Limiter, pair: &Pair) -> Result<u64> {
    let end = Instant::now() + PATIENCE;
    loop {
        let [counted, listed] = [counted(limiter)?, listed(&pair.server)?];
        if counted == listed {
            return Ok(counted);
        }
        ensure!(
            Instant::now() < end,
            "{counted} are counted, ss lists {listed}"
        );
        thread::sleep(Duration::from_millis(50));
    }
}

/// Returns a counter of the kernel's network stack.
pub(crate) fn stack_count(namespace: &Namespace, name: &str) -> Result<u64> {
    let text = namespace.enter(|| Ok(fs::read_to_string("/proc/thread-self/net/netstat")?))?;
    let mut lines = text.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        let mut both = names.split(' ').zip(values.split(' '));
        if let Some((_, value)) = both.find(|(of, _)| *of == name) {
            return Ok(value.parse()?);
        }
    }
    anyhow::bail!("the network stack counts no {name}")
}

#[test]
fn no_connection_is_counted_that_is_not_open() -> Result<()> {
    let pair = pair()?;
    allow_all(&pair)?;
    end::prepare(&pair, VANISHING)?;
    let mut servers = Vec::new();
    for kind in Kind::ALL {
        match kind.serve(&pair.server)? {
            Some(server) => servers.push((kind, server)),
            None => println!("this kernel has no connections of the kind {kind:?}"),
        }
    }
    if servers.iter().any(|(kind, _)| *kind == Kind::Multipath) {
        add_subflows(&pair, "10.78.0.2")?;
    }
    let policy = format!(
        "limits: {{Web: {{id: ipAddress, cost: connections, limit: 100000, match: {{protocol: tcp, \
         destination-port: {:?}}}}}}}\n",
        Kind::ALL.map(Kind::port)
    );
    let limiter = start(&pair, &policy)?;
    let count = env::var("LIMITER_CONNECTIONS").map_or(Ok(COUNT), |text| text.parse())?;
    let mut open = VecDeque::new();
    let mut ends = Ends::default();
    for number in 0..count {
        open.push_back(
            connect(&pair, &servers, number).with_context(|| format!("connection {number}"))?,
        );
        if open.len() == AT_A_TIME {
            let first = open.pop_front().context("it is open")?;
            ends.end(first)
                .with_context(|| format!("the end of one before {number}"))?;
        }
    }
    let expected = assert_as_listed(&limiter, &pair)?;
    ensure!(expected >= AT_A_TIME as u64 - 1, "{expected} are open");
    println!("after {count} connections {expected} are open, and counted");
    for open in open {
        ends.end(open)?;
    }
    ends.finish(&pair)?;
    crate::wait(|| Ok(assert_as_listed(&limiter, &pair)? == 0))?;
    let fast = stack_count(&pair.server, "TCPFastOpenPassive")?;
    ensure!(fast >= count as u64 / 6, "{fast} opened fast");
    println!("{fast} opened fast; ended, by way: {:?}", ends.ended);
    let status = limiter.status()?;
    ensure!(status["connections"]["uncounted"] == 0, "{status}");
    Ok(())
}

/// Opens a connection; `number` selects the kind and the family.
fn connect(pair: &Pair, servers: &[(Kind, Server)], number: usize) -> Result<Open> {
    let (kind, server) = &servers[number / WAYS % servers.len()];
    let family = number / WAYS / servers.len() % 2;
    let (from, port) = if number % WAYS == VANISHES {
        // No port twice while the server may still have its former connection.
        let port = 10_000 + number / WAYS % 50_000;
        (VANISHING[family], u16::try_from(port)?)
    } else {
        ([CLIENT, CLIENT_V6][family], 0)
    };
    Ok(Open {
        number,
        kind: *kind,
        client: kind.connect_at(pair, from, port)?,
        serving: server.accept()?,
    })
}
