//! Checks the workspace's dependencies against deny.toml, with cargo-deny.

use std::{
    env, fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::Result;

use crate::{command, setup, workspace};

/// The most seconds to wait for an unresponsive network. A missing network takes half a second.
const PATIENCE: &str = "20";

/// Checks licences, bans and sources, which needs no network; and known vulnerabilities, if a database of
/// them is present or can be fetched.
pub(crate) fn check() -> Result<()> {
    setup::ensure_for_dependencies()?;
    run(&[], &["bans", "licenses", "sources"])?;
    fetch()?;
    if has_advisories() {
        return run(&["--offline"], &["advisories"]);
    }
    eprintln!("{NOT_CHECKED}");
    Ok(())
}

/// Returns a warning for the end of a run if a check was left out.
pub(crate) fn left_out() -> Option<&'static str> {
    (!has_advisories()).then_some(NOT_CHECKED)
}

const NOT_CHECKED: &str = "WARNING: known vulnerabilities of the dependencies (advisories) were NOT checked: there is no \
     database of them here, and none can be fetched; `cargo deny fetch db` says why";

fn run(options: &[&str], checks: &[&str]) -> Result<()> {
    let mut cargo = command::cargo("deny");
    cargo
        .arg("--locked")
        .args(options)
        .args(["check", "--hide-inclusion-graph"])
        .args(checks);
    command::succeed(&mut cargo)
}

/// Fetches the newest database. Without a network, an earlier run's database is good enough.
fn fetch() -> Result<()> {
    // `timeout` also ends child processes of cargo-deny.
    let mut timeout = Command::new("timeout");
    timeout
        .arg(PATIENCE)
        .arg(command::cargo_file())
        .args(["deny", "--locked", "fetch", "db"])
        .current_dir(workspace::root())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command::status(&mut timeout).map(drop)
}

/// Returns whether cargo-deny has a database.
fn has_advisories() -> bool {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::home_dir().map(|home| home.join(".cargo")));
    home.and_then(|home| fs::read_dir(home.join("advisory-dbs")).ok())
        .is_some_and(|directory| {
            directory
                .flatten()
                .any(|entry| entry.path().join("crates").is_dir())
        })
}
