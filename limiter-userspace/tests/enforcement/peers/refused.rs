//! A client that is refused knows at once, as curl says.

use std::net::{IpAddr, SocketAddr, TcpListener};

use anyhow::{Context as _, Result, ensure};
use testbed::Pair;

use super::{Defence, sent, spend};
use crate::{connections::stack_count, pair, server_for};

/// One token in an hour, which is spent.
const CONFIGURATION: &str = "\
limits:
  Web: {id: total, cost: packets, match: {protocol: tcp, destination-port: 80},
    burst: 1, count: 1, period: 1h, deny: reset}
";

/// curl's exit status for a refused connection (curl(1), "EXIT CODES").
const COULD_NOT_CONNECT: i32 = 7;

/// Fails unless curl is refused at once.
fn assert_refused(pair: &Pair, from: IpAddr) -> Result<()> {
    let url = format!("http://{}/", SocketAddr::new(server_for(from)?, 80));
    let mut curl = pair.client.command("curl");
    let curl = curl.args(["--silent", "--show-error", "--noproxy", "*"]);
    let curl = curl.args(["--max-time", "5", "--interface"]);
    let output = curl.arg(from.to_string()).arg(url).output();
    let output = output.context("cannot run curl: run `cargo xtask setup`")?;
    ensure!(
        output.status.code() == Some(COULD_NOT_CONNECT),
        "{output:?}"
    );
    // At its first try.
    ensure!(
        stack_count(&pair.client, "TCPSynRetrans")? == 0,
        "{output:?}"
    );
    Ok(())
}

fn assert_is_refused(start: fn(&Pair, &str) -> Result<Defence>) -> Result<()> {
    let pair = pair()?;
    let defence = start(&pair, CONFIGURATION)?;
    let listen = |address: &str| {
        let address = SocketAddr::new(address.parse()?, 80);
        pair.server.enter(|| Ok(TcpListener::bind(address)?))
    };
    // Without the limiter they would take it.
    let _listeners = [listen("10.77.0.1")?, listen("fd77::1")?];
    spend(&pair, |frame| frame.tcp_ack(1, 80, 1, 1))?;
    for from in ["10.77.0.2", "fd77:1:1::1"] {
        let from = from.parse()?;
        let before = sent(&defence.limiter, "Web", "reset")?;
        assert_refused(&pair, from).with_context(|| format!("curl from {from}"))?;
        ensure!(sent(&defence.limiter, "Web", "reset")? > before);
    }
    defence.stop()
}

#[test]
fn curl_is_refused_at_once() -> Result<()> {
    assert_is_refused(Defence::generic)
}

#[test]
fn a_driver_refuses_curl_at_once() -> Result<()> {
    assert_is_refused(Defence::native)
}
