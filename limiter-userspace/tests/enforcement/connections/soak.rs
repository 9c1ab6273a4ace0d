//! Many connections that end in every way: none is counted that is not open.

use std::{
    collections::VecDeque,
    env,
    net::{Shutdown, TcpStream},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use socket2::Socket;
use testbed::{Namespace, Pair};

use super::{CLIENT, CLIENT_V6, PORT, Server, assert_counted, connect, counted, start};
use crate::{pair, syn_cookies::set, take_turn};

/// How many connections, unless `LIMITER_CONNECTIONS` says another number.
const COUNT: usize = 3_000;

/// How many of them are open at a time.
const AT_A_TIME: usize = 300;

/// How many ways to end there are.
const WAYS: usize = 6;

/// Ends a connection, in one of several ways.
fn end(number: usize, client: TcpStream, serving: TcpStream) -> Result<()> {
    match number % WAYS {
        0 => drop((client, serving)),
        1 => drop((serving, client)),
        way @ (2 | 3) => {
            let (resets, other) = if way == 2 {
                (client, serving)
            } else {
                (serving, client)
            };
            Socket::from(resets).set_linger(Some(Duration::ZERO))?;
            drop(other);
        }
        4 => {
            client.shutdown(Shutdown::Write)?;
            drop((serving, client));
        }
        _ => {
            serving.shutdown(Shutdown::Both)?;
            client.shutdown(Shutdown::Both)?;
        }
    }
    Ok(())
}

/// Returns how many connections `ss` lists.
fn listed(namespace: &Namespace) -> Result<usize> {
    let filter = format!("sport = :{PORT}");
    let arguments = ["-H", "-t", "-n", "state", "connected", &filter];
    let output = namespace.command("ss").args(arguments).output()?;
    ensure!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout)?;
    let open = |line: &&str| !line.starts_with("TIME-WAIT") && !line.starts_with("SYN-RECV");
    Ok(text.lines().filter(open).count())
}

fn allow_ports(pair: &Pair) -> Result<()> {
    for namespace in [&pair.client, &pair.server] {
        // Else the ports of those that end orderly are not free again within the test.
        set(namespace, "tcp_max_tw_buckets", "0")?;
    }
    Ok(())
}

#[test]
fn no_connection_is_counted_that_is_not_open() -> Result<()> {
    let _turn = take_turn();
    let pair = pair()?;
    allow_ports(&pair)?;
    let server = Server::new(&pair.server)?;
    let policy = format!(
        "limits: {{Web: {{id: ipAddress, cost: connections, limit: 1000, match: {{protocol: tcp, \
         destination-port: {PORT}}}}}}}\n"
    );
    let limiter = start(&pair, &policy)?;
    let count = env::var("LIMITER_CONNECTIONS").map_or(Ok(COUNT), |text| text.parse())?;
    let mut open = VecDeque::new();
    for number in 0..count {
        let from = [CLIENT, CLIENT_V6][number / WAYS % 2];
        let client = connect(&pair, from).with_context(|| format!("connection {number}"))?;
        open.push_back((client, server.accept()?));
        if open.len() == AT_A_TIME {
            let (client, serving) = open.pop_front().context("it is open")?;
            end(number, client, serving)?;
        }
    }
    let expected = listed(&pair.server)?;
    ensure!(expected >= AT_A_TIME - 1, "ss lists {expected}");
    assert_counted(&limiter, expected as u64)?;
    println!("after {count} connections {expected} are open, and counted");
    for (number, (client, serving)) in open.into_iter().enumerate() {
        end(number, client, serving)?;
    }
    assert_counted(&limiter, 0)?;
    ensure!(listed(&pair.server)? == 0 && counted(&limiter)? == 0);
    let status = limiter.status()?;
    ensure!(status["connections"]["uncounted"] == 0, "{status}");
    Ok(())
}
