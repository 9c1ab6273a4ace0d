//! Runs the command line as a user does: each failure is one clear line on stderr with the right
//! exit code, and leaves nothing attached. Needs root.

#![expect(
    clippy::disallowed_methods,
    reason = "a test waits for what takes time"
)]

mod abi;
mod attacked;
mod automatic_bans;
mod bans;
mod confirm;
mod connections;
mod control;
mod diff;
mod dns_cookies;
mod feed_bounds;
mod folder;
mod forged;
mod generated;
mod guard;
mod hanging_disk;
mod health;
mod incidents;
mod interfaces;
mod known;
mod leftovers;
mod lists;
mod log;
mod lost_pins;
mod machine;
mod many;
mod metrics;
mod moved;
mod names;
mod offenders;
mod output;
mod own_peers;
mod page;
mod patterns;
mod pinned;
mod pins;
mod questions;
mod reload;
mod replaced;
mod reset;
mod reset_names;
mod scope;
mod service;
mod sessions;
mod several_rates;
mod sieve;
mod standing;
mod starved;
mod state;
mod strategies;
mod streams;
mod terminal;
mod top;
mod unseen;
mod usage;
mod waiting;
mod watch;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::{Limiter, Namespace, Pair, SERVER_INTERFACE};

const BINARY: &str = env!("CARGO_BIN_EXE_limiter");

const GOOD: &str = "limits: {PacketsPerIPAddress: {burst: 20, count: 20, period: 1s}}\n";

/// Makes a pair of namespaces with an address on each end.
fn pair() -> Result<Pair> {
    Pair::new(&["10.77.0.2/24".parse()?], &["10.77.0.1/24".parse()?])
}

/// A directory with a good configuration, for a daemon that must fail to start.
struct Scene {
    directory: TempDir,
}

impl Scene {
    fn new() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        fs::write(directory.path().join("limiter.yaml"), GOOD)?;
        Ok(Self { directory })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn socket(&self) -> PathBuf {
        self.path("control.sock")
    }

    /// Returns `limiter run` in a namespace, with the good configuration, its own socket, and no
    /// metrics.
    fn run(&self, namespace: &Namespace, arguments: &[&str]) -> Command {
        self.run_with_metrics(namespace, &[&["--metrics", "off"], arguments].concat())
    }

    /// Returns the same with metrics at their default address.
    fn run_with_metrics(&self, namespace: &Namespace, arguments: &[&str]) -> Command {
        let mut command = namespace.command(BINARY);
        command
            .args(["run", "--log-format", "human", "--config"])
            .arg(self.path("limiter.yaml"))
            .arg("--socket")
            .arg(self.socket())
            .args(arguments);
        command
    }
}

/// Runs a command that must fail with exit code 1 and with exactly the lines `expected` on stderr;
/// `…` matches anything.
#[track_caller]
fn assert_fails(command: &mut Command, expected: &[&str]) -> Result<()> {
    let output = command.output().context("cannot run the binary")?;
    let reported = String::from_utf8(output.stderr.clone())?;
    let lines: Vec<_> = reported.lines().collect();
    ensure!(
        output.status.code() == Some(1),
        "{command:?} exited with {}: {reported}",
        output.status
    );
    ensure!(
        lines.len() == expected.len()
            && lines
                .iter()
                .zip(expected)
                .all(|(line, pattern)| matches(&message(line), pattern)),
        "{command:?} said\n{reported}instead of\n{}",
        expected.join("\n")
    );
    Ok(())
}

/// Returns the message of a line on stderr, which is JSON under `--json`.
fn message(line: &str) -> String {
    let json = serde_json::from_str::<Value>(line);
    let message = json
        .ok()
        .and_then(|json| Some(json["message"].as_str()?.to_owned()));
    message.unwrap_or_else(|| line.to_owned())
}

fn matches(line: &str, pattern: &str) -> bool {
    let mut rest = line;
    let mut pieces = pattern.split('…');
    let first = pieces.next().unwrap_or_default();
    let Some(after) = rest.strip_prefix(first) else {
        return false;
    };
    rest = after;
    let mut last = None;
    for piece in pieces {
        last = Some(piece);
        let Some(position) = rest.find(piece) else {
            return false;
        };
        rest = &rest[position + piece.len()..];
    }
    // A pattern that ends in `…` takes any rest.
    rest.is_empty() || last == Some("")
}

/// Fails unless nothing is attached to the server's interface and the socket is gone.
#[track_caller]
fn assert_nothing_left(pair: &Pair, socket: &Path) -> Result<()> {
    let link = pair
        .server
        .ip(&["-details", "link", "show", SERVER_INTERFACE])?;
    ensure!(!link.contains("xdp"), "still attached: {link}");
    ensure!(!socket.exists(), "{} is left", socket.display());
    Ok(())
}

fn text(bytes: &[u8]) -> Result<&str> {
    Ok(std::str::from_utf8(bytes)?)
}

fn succeed(command: &mut Command) -> Result<Output> {
    let output = command.output()?;
    ensure!(
        output.status.success(),
        "{command:?} fails: {}",
        text(&output.stderr)?
    );
    Ok(output)
}

/// Copies the binary in another process: a child forked here meanwhile would hold the copy open for
/// writing, so that executing it fails.
fn copy_binary(to: &Path) -> Result<()> {
    let copied = Command::new("cp").arg(BINARY).arg(to).status()?;
    ensure!(copied.success(), "cp: {copied}");
    Ok(())
}

/// How long an event may take on a busy machine. Only failures take this long.
const PATIENCE: Duration = Duration::from_secs(90);

fn wait_for(mut condition: impl FnMut() -> Result<bool>) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !condition()? {
        ensure!(Instant::now() < deadline, "it did not happen in time");
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Returns the daemon's bans.
fn bans(limiter: &Limiter) -> Result<Vec<Value>> {
    let response = limiter.ask(&json!({"bans": {}}))?;
    ensure!(
        response["next"].is_null(),
        "one response does not have all bans"
    );
    let mut bans = response["bans"].as_array().context("no bans")?.clone();
    bans.sort_by_key(|ban| ban["prefix"].to_string());
    Ok(bans)
}

fn banned(limiter: &Limiter) -> Result<Vec<String>> {
    let bans = bans(limiter)?;
    let prefixes = bans.iter().map(|ban| ban["prefix"].as_str());
    let prefixes: Option<Vec<_>> = prefixes.map(|prefix| prefix.map(str::to_owned)).collect();
    prefixes.context("a ban without a prefix")
}
