//! `limiter connections`, the page and `limiter top`: the keys with the most open connections.

use std::{
    net::{TcpListener, TcpStream},
    path::Path,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::{Limiter, Pair, PinDirectory, SERVER_INTERFACE};

use crate::{BINARY, GOOD, assert_fails, page::get, pair, terminal::Terminal, wait_for};

const PORT: u16 = 7001;

const CONFIGURATION: &str = "\
page: on
limits:
  Web: {id: ipAddress, cost: connections, limit: 8, queue: {size: 5}, match: {destination-port: 7001}}
  OpenConnectionsOfEverybodyAtOnce: {id: total, cost: connections, limit: 1000}
  Packets: {id: total, cost: packets, rate: 100000/s}
";

fn start(pair: &Pair, configuration: &str) -> Result<Limiter> {
    let arguments = ["-i", SERVER_INTERFACE, "--metrics", "off"];
    Limiter::start(Path::new(BINARY), &pair.server, configuration, &arguments)
}

/// Opens this many connections from the client to the server; returns both ends.
fn open(pair: &Pair, number: usize) -> Result<Vec<(TcpStream, TcpStream)>> {
    let server = pair
        .server
        .enter(|| Ok(TcpListener::bind(("10.77.0.1", PORT))?))?;
    let open = (0..number).map(|_| {
        let client = pair
            .client
            .enter(|| Ok(TcpStream::connect(("10.77.0.1", PORT))?))?;
        Ok((client, server.accept()?.0))
    });
    open.collect()
}

/// Waits until the daemon has attributed the open connections: to the client, and to the total.
fn wait_for_keys(limiter: &Limiter, open: usize) -> Result<()> {
    let mut reported = Value::Null;
    wait_for(|| {
        reported = limiter.ask(&json!({"connections": {"count": 20}}))?;
        let keys = reported["keys"].as_array().context("no keys")?;
        // The daemon polls once a second, perhaps in the middle of the connects.
        Ok(keys.len() == 2 && keys.iter().all(|key| key["open"] == open))
    })
    .with_context(|| format!("{reported}"))
}

/// Returns the command's output for a terminal of this width.
fn shown(limiter: &Limiter, arguments: &[&str], columns: u16) -> Result<String> {
    let mut command = limiter.command(&[&["connections"], arguments].concat());
    let output = command.env("COLUMNS", columns.to_string()).output()?;
    ensure!(output.status.success());
    Ok(String::from_utf8(output.stdout)?)
}

#[test]
fn a_table_of_keys() -> Result<()> {
    let pair = pair()?;
    // The daemon's first poll finds them. The next one comes after twenty times the first one's duration.
    let _open = open(&pair, 5)?;
    let limiter = start(&pair, CONFIGURATION)?;
    wait_for_keys(&limiter, 5)?;
    let wide = shown(&limiter, &[], 80)?;
    let lines: Vec<_> = wide.lines().collect();
    ensure!(
        lines[0].starts_with("5 open that limits count, 2 keys, ") && lines[0].ends_with(" ago"),
        "{wide}"
    );
    assert_eq!(
        lines[1..],
        [
            "key        limit                             open  at most  waiting",
            "10.77.0.2  Web                                  5        8        0",
            "total      OpenConnectionsOfEverybodyAtOnce     5    1 000        –",
        ]
    );
    let narrow = shown(&limiter, &[], 60)?;
    for line in wide.lines().chain(narrow.lines()) {
        ensure!(line.chars().count() <= 80, "{wide}");
    }
    for line in narrow.lines() {
        ensure!(line.chars().count() <= 60, "{narrow}");
    }
    let words = |text: &str| {
        text.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    for word in words(lines[2]) {
        ensure!(words(&narrow).contains(&word), "{narrow}");
    }
    let one = shown(&limiter, &["--limit", "Web"], 80)?;
    ensure!(one.contains("1 key, ") && !one.contains("total"), "{one}");
    let first = shown(&limiter, &["-n", "1"], 80)?;
    assert_eq!(first.lines().count(), 3, "{first}");

    let page = get(&pair.server, "/")?;
    ensure!(
        page.contains("Keys with the most open connections"),
        "{page}"
    );
    ensure!(
        page.contains("<a href=\"/explain?address=10.77.0.2\">"),
        "{page}"
    );

    let socket = limiter.socket();
    let socket = socket.to_str().context("a path")?;
    let mut terminal = Terminal::start(BINARY, &["top", "--interval", "0.5", "--socket", socket])?;
    terminal.wait_for("limiter top  server0 native")?;
    terminal.press("4")?;
    terminal.wait_for("5 open that limits count")?;
    terminal.wait_for("key        limit")?;
    terminal.wait_for("10.77.0.2  Web")?;
    // A part of the key finds it.
    terminal.press("/77.0.2\r")?;
    terminal.wait_for("connections · filter 77.0.2")?;
    terminal.wait_for("10.77.0.2  Web")?;
    terminal.press("q")?;
    ensure!(terminal.finish()?.0.success());
    assert_reported_what_cannot_be_shown(&limiter)?;
    limiter.stop()?;
    Ok(())
}

/// Fails unless the command names the limits that it cannot show, and says when there is none.
fn assert_reported_what_cannot_be_shown(limiter: &Limiter) -> Result<()> {
    let ask = |limit: &str| limiter.command(&["connections", "--limit", limit]);
    assert_fails(
        &mut ask("Wep"),
        &["unknown limit 'Wep', did you mean 'Web'?"],
    )?;
    assert_fails(
        &mut ask("Packets"),
        &["the limit 'Packets' does not count open connections: name one with `cost: connections`"],
    )?;
    limiter.configure(GOOD)?;
    limiter.show(&["reload"])?;
    assert_eq!(
        limiter.show(&["connections"])?,
        "No limit counts open connections.\n"
    );
    Ok(())
}

/// Only a daemon attributes connections to keys; the pins have the total.
#[test]
fn pins_know_how_many_are_open() -> Result<()> {
    let (pins, pair) = (PinDirectory::new()?, pair()?);
    let _open = open(&pair, 3)?;
    let configuration = CONFIGURATION.replace("page: on\n", "");
    let pin = pins.argument();
    let arguments = ["-i", SERVER_INTERFACE, "--metrics", "off", &pin];
    let mut limiter = Limiter::start(Path::new(BINARY), &pair.server, &configuration, &arguments)?;
    wait_for_keys(&limiter, 3)?;
    limiter.kill()?;
    let output = limiter
        .command(&["connections"])
        .arg("--pin")
        .arg(pins.path())
        .output()?;
    assert_eq!(
        String::from_utf8(output.stdout)?,
        "3 open that limits count; no daemon has found their keys\n"
    );
    Ok(())
}
