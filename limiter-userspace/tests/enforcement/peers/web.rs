//! nginx and curl, through SYN cookies.

use anyhow::{Context as _, Result, ensure};
use testbed::{Limiter, Pair, SERVER_INTERFACE};

use super::{binary, sent, server::Server, succeed};
use crate::{
    pair,
    syn_cookies::{number_of, set},
};

const SMALL: (&str, usize) = ("small", 3000);
const LARGE: (&str, usize) = ("large", 10 << 20);

/// Far below the second after which a client would send its SYN again.
const AT_ONCE: f64 = 0.7;

/// No SYN passes but the first; each other one gets a cookie.
const CONFIGURATION: &str = "\
limits:
  Syns: {id: total, cost: packets, burst: 1, count: 1, period: 1h, deny: syn-cookie,
    match: {protocol: tcp, destination-port: 80, tcp-flags: 'syn,!ack'}}
answers:
  per-prefix: {burst: 100000, count: 100000, period: 1s}
  total: {burst: 100000, count: 100000, period: 1s}
";

/// Has curl fetch a file so many times, each over a connection of its own.
fn fetch(pair: &Pair, server: &str, (name, bytes): (&str, usize), times: usize) -> Result<()> {
    let mut curl = pair.client.command("curl");
    curl.args([
        "--silent",
        "--show-error",
        "--noproxy",
        "*",
        "--max-time",
        "30",
    ]);
    curl.args(["--header", "Connection: close", "--output", "/dev/null"]);
    curl.args([
        "--write-out",
        "%{http_code} %{size_download} %{time_connect} %{errormsg}\\n",
    ]);
    let shown = succeed(curl.arg(format!("http://{server}/{name}?[1-{times}]")))?;
    ensure!(shown.lines().count() == times, "{shown}");
    for line in shown.lines() {
        let mut words = line.split(' ');
        let mut word = || words.next().context("too few words");
        ensure!(
            word()? == "200" && word()?.parse::<usize>()? == bytes,
            "{line}"
        );
        ensure!(word()?.parse::<f64>()? < AT_ONCE, "{line}");
    }
    Ok(())
}

/// With any timestamps: none, the kernel's with a random offset, and without one.
#[test]
fn nginx_and_curl_connect_through_cookies() -> Result<()> {
    let connections = number_of(50)?;
    let transfers = (connections / 100).max(5);
    for timestamps in ["0", "1", "2"] {
        let pair = pair()?;
        set(&pair.server, "tcp_syncookies", "2")?;
        for end in [&pair.client, &pair.server] {
            set(end, "tcp_timestamps", timestamps)?;
        }
        let server = Server::nginx(&pair, &[SMALL, LARGE])?;
        pair.compute_checksums()?;
        let arguments = ["-i", SERVER_INTERFACE, "--mode", "generic"];
        let limiter = Limiter::start(binary(), &pair.server, CONFIGURATION, &arguments)?;
        for address in ["10.77.0.1", "[fd77::1]"] {
            let context = || format!("{address}, tcp_timestamps {timestamps}");
            fetch(&pair, address, SMALL, connections).with_context(context)?;
            fetch(&pair, address, LARGE, transfers).with_context(context)?;
        }
        // The first SYN of all has the token. A port that comes again, of a connection that waits for
        // its end, goes to the socket.
        let cookies = sent(&limiter, "Syns", "syn-cookie")?;
        let again = limiter.status()?["reasons"]["listener_has_room"].as_u64();
        let again = again.context("no such reason")?;
        let fetched = 2 * (connections + transfers) as u64;
        ensure!(
            cookies + again == fetched - 1,
            "{cookies} cookies, {again} to the socket"
        );
        ensure!(again < cookies, "{again} of {cookies} without a cookie");
        println!("tcp_timestamps {timestamps}: {cookies} cookies, {again} to the socket");
        ensure!(limiter.stop()?.success());
        drop(server);
    }
    Ok(())
}
