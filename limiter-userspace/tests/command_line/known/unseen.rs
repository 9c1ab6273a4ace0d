//! Machines on which the limiter cannot observe handshakes.

use std::{
    fs,
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use limiter_datapath::kernel::pins::ABI;
use tempfile::TempDir;
use testbed::{Limiter, Pair, SERVER_INTERFACE};

use super::{is_trusted, standing};
use crate::{
    BINARY, pair,
    pinned::{Pinned, assert_metric, send},
    succeed, wait_for,
};

const CONFIGURATION: &str = "\
standing: {capacity: 4096, visits: {count: 2, apart: 2s}}
limits: {All: {id: total, cost: packets, burst: 2000, count: 1, period: 1h,
  reserve: {retried: 1, unknown: 50%}, match: {protocol: udp}}}
";

/// Starts a limiter in its own mount namespace, after shell commands.
fn start(pair: &Pair, directory: &TempDir, before: &str, mounts: &str) -> Result<Limiter> {
    start_with(CONFIGURATION, pair, directory, (before, mounts))
}

/// Does the same with another configuration.
fn start_with(
    configuration: &str,
    pair: &Pair,
    directory: &TempDir,
    (before, mounts): (&str, &str),
) -> Result<Limiter> {
    let binary = directory.path().join("limiter");
    let script = format!(
        "#!/bin/sh\n{before}exec unshare --cgroup --mount sh -c \
         'umount --lazy --all --types cgroup2; {mounts}exec {BINARY} \"$@\"' limiter \"$@\"\n"
    );
    fs::write(&binary, script)?;
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o755))?;
    let arguments = ["-i", SERVER_INTERFACE, "--log-format", "human"];
    Limiter::start(&binary, &pair.server, configuration, &arguments)
}

/// Fails unless the log and the commands warn that handshakes prove no source, and give the reason.
fn assert_reported(pair: &Pair, limiter: &Limiter, why: &str) -> Result<()> {
    let log = limiter.log()?;
    ensure!(
        log.contains(&format!("WARN handshakes prove no source: {why}")),
        "{log}"
    );
    ensure!(log.contains("`limiter reload` tries again"), "{log}");
    for command in ["status", "trusted"] {
        let shown = limiter.show(&[command])?;
        ensure!(
            shown.contains(&format!("HANDSHAKES PROVE NO SOURCE: {why}")),
            "{shown}"
        );
    }
    assert_metric(&pair.server, "limiter_handshakes_noted 0")
}

/// Fails unless operators, visits and retries still give sources a standing.
fn assert_goes_on(pair: &Pair, limiter: &Limiter) -> Result<()> {
    limiter.show(&["trust", "192.0.2.1"])?;
    ensure!(is_trusted(limiter, "192.0.2.1")?);
    let (regular, newcomer) = ("10.77.0.7", "10.77.0.8");
    wait_for(|| {
        send(pair, regular, 1)?;
        Ok(standing(limiter, regular)? == ("familiar".to_owned(), "visits".to_owned()))
    })?;
    // Unknown sources have spent all unreserved tokens.
    send(pair, "10.77.0.9", 1_100)?;
    wait_for(|| {
        send(pair, newcomer, 1)?;
        Ok(standing(limiter, newcomer)? == ("retried".to_owned(), "retry".to_owned()))
    })
}

#[test]
fn without_a_cgroup_of_version_2_the_daemon_goes_on() -> Result<()> {
    let (pair, directory) = (pair()?, tempfile::tempdir()?);
    let limiter = start(&pair, &directory, "", "")?;
    let why = "there is no root cgroup of version 2: mount one";
    assert_reported(&pair, &limiter, why)?;
    assert_goes_on(&pair, &limiter)
}

/// Polls then charge handshakes up to a second late, and every output says so.
#[test]
fn without_a_cgroup_of_version_2_looks_charge_handshakes() -> Result<()> {
    const LIMIT: &str = "limits: {Web: {id: ipAddress, cost: handshakes, burst: 3, count: 1, \
                         period: 1h, match: {destination-port: 7001}}}\n";
    let (pair, directory) = (pair()?, tempfile::tempdir()?);
    let server: SocketAddr = "10.77.0.1:7001".parse()?;
    let listener = pair.server.enter(|| Ok(TcpListener::bind(server)?))?;
    let limiter = start_with(LIMIT, &pair, &directory, ("", ""))?;
    let why = "there is no root cgroup of version 2: mount one";
    let shown = limiter.show(&["status"])?;
    ensure!(
        shown.contains(&format!("COUNTED ONCE A SECOND: {why}")),
        "{shown}"
    );
    let connect = || {
        let patience = Duration::from_millis(700);
        pair.client
            .enter(|| Ok(TcpStream::connect_timeout(&server, patience)?))
    };
    let mut open = Vec::new();
    // The first polls take existing connections for old ones.
    wait_for(|| {
        if let Ok(client) = connect() {
            open.push((client, listener.accept()?));
        }
        Ok(limiter.explain("10.77.0.2")?["limits"][0]["remaining"] == 0)
    })?;
    ensure!(open.len() >= 3, "{} were completed", open.len());
    ensure!(connect().is_err(), "none is left, and one was completed");
    Ok(())
}

/// A cgroup below the machine's root. To a daemon in its own cgroup namespace it looks like the
/// root.
struct Cgroup(PathBuf);

impl Cgroup {
    fn new() -> Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts")?;
        let mounts = mounts.lines().map(|line| line.split(' '));
        let mut points = mounts.filter_map(|mut fields| {
            let point = fields.nth(1)?;
            (fields.next()? == "cgroup2").then_some(point)
        });
        let root = Path::new(points.next().context("no cgroup of version 2")?);
        let path = root.join(format!("limiter-test-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    /// Attaches a pinned program alone, or detaches it.
    fn change(&self, what: &str, program: &Path) -> Result<()> {
        let mut bpftool = Command::new("bpftool");
        bpftool.args(["cgroup", what]).arg(&self.0);
        succeed(bpftool.args(["sock_ops", "pinned"]).arg(program)).map(drop)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The cgroup may still count a process that has just ended.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn where_the_cgroup_takes_no_other_program_the_daemon_goes_on() -> Result<()> {
    let (pair, directory, other) = (pair()?, tempfile::tempdir()?, Pinned::start(CONFIGURATION)?);
    let cgroup = Cgroup::new()?;
    let policy = other.pins.path().join(format!("v{ABI}/policies/1"));
    let program = policy.join("handshakes");
    cgroup.change("attach", &program)?;
    let join = format!("echo $$ > {}/cgroup.procs\n", cgroup.0.display());
    let mount = format!("mount -t cgroup2 none {} && ", directory.path().display());
    let limiter = start(&pair, &directory, &join, &mount)?;
    let why = "cannot attach the program that records handshakes to the root cgroup: Operation not \
               permitted (os error 1); perhaps another program is there that allows none beside it";
    assert_reported(&pair, &limiter, why)?;
    assert_goes_on(&pair, &limiter)?;

    cgroup.change("detach", &program)?;
    limiter.show(&["reload"])?;
    assert_metric(&pair.server, "limiter_handshakes_noted 1")?;
    let shown = limiter.show(&["status"])?;
    ensure!(!shown.contains("HANDSHAKES"), "{shown}");
    ensure!(limiter.stop()?.success());
    Ok(())
}
