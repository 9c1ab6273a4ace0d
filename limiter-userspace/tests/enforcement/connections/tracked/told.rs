//! What the kernel does not tell, or tells in vain, is found by looks; what cannot be known is told.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use testbed::Limiter;

use super::{
    super::{CLIENT, LIMIT, SOON, Server, policy, start},
    Scene, TRACK, assert_tracked, tracked,
};
use crate::{
    forwarding::{Forwarding, nft, set},
    take_turn,
};

/// Connections to open and close while the daemon does not listen: four events each, of a kilobyte, are
/// more than the eight megabytes that may wait.
const UNHEARD: usize = 4000;

/// Whose those are.
const MANY: &str = "fd77:1:1:2::1";

/// Returns what the status says against counting what is forwarded.
fn trouble(limiter: &Limiter, which: &str) -> Result<Option<String>> {
    let status = limiter.status()?;
    let told = status["daemon"]["tracking"][which].as_str();
    Ok(told.map(str::to_owned))
}

fn await_trouble(limiter: &Limiter, which: &str, expected: Option<&str>) -> Result<()> {
    let end = Instant::now() + SOON;
    loop {
        let told = trouble(limiter, which)?;
        let is_so = match (&told, expected) {
            (Some(told), Some(expected)) => told.contains(expected),
            (told, expected) => told.is_none() && expected.is_none(),
        };
        if is_so {
            return Ok(());
        }
        ensure!(Instant::now() < end, "{told:?}, not {expected:?}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Returns how many events the kernel had to drop for the daemon, which is alone in its namespace.
fn lost(scene: &Scene) -> Result<u64> {
    const NETFILTER: &str = "12";
    let table = scene.forwarding.pair.server.enter(|| {
        fs::read_to_string("/proc/thread-self/net/netlink").context("cannot read net/netlink")
    })?;
    let columns = table.lines().map(|line| line.split_whitespace());
    let drops = columns.filter_map(|mut columns| {
        let is_netfilter = columns.nth(1)? == NETFILTER;
        columns.nth(6)?.parse::<u64>().ok().filter(|_| is_netfilter)
    });
    Ok(drops.sum())
}

#[test]
fn lost_events_leave_no_count() -> Result<()> {
    let _turn = take_turn();
    let scene = Scene::new()?;
    let limiter = scene.start(&tracked("ipAddress"))?;
    let mut held = scene.fill(CLIENT)?;
    assert_tracked(&limiter, LIMIT as u64)?;
    // The first packet of the family waits for the neighbours to be found.
    drop(scene.assert_room(MANY)?);
    assert_tracked(&limiter, LIMIT as u64)?;
    limiter.signal(Signal::SIGSTOP)?;
    // One of those counted ends, and one more begins, from another address, amid very many.
    drop(held.pop());
    let other = scene.open("10.77.0.3")?;
    for number in 0..UNHEARD {
        let opened = scene.open(MANY);
        drop(opened.with_context(|| format!("connection {number}"))?);
    }
    let lost = lost(&scene)?;
    println!("{lost} events were lost");
    limiter.signal(Signal::SIGCONT)?;
    ensure!(lost > 0, "no event was lost");
    assert_tracked(&limiter, LIMIT as u64)?;
    held.push(scene.assert_room(CLIENT)?);
    assert_tracked(&limiter, LIMIT as u64 + 1)?;
    scene.assert_full(CLIENT)?;
    drop((held, other));
    assert_tracked(&limiter, 0)
}

/// Without events, looks count once a second, and the daemon says so.
#[test]
fn without_events_looks_count() -> Result<()> {
    let _turn = take_turn();
    let scene = Scene::new()?;
    let host = &scene.forwarding.pair.server;
    set(host, "netfilter/nf_conntrack_events", "0")?;
    let limiter = scene.start(&tracked("ipAddress"))?;
    let mut check = host.command(env!("CARGO_BIN_EXE_limiter"));
    let check = check.arg("check").arg(limiter.configuration()).output()?;
    let warned = String::from_utf8_lossy(&check.stderr);
    ensure!(
        warned.contains("forwards are counted only once a second: net.netfilter"),
        "{warned}"
    );
    await_trouble(
        &limiter,
        "late",
        Some("net.netfilter.nf_conntrack_events is 0"),
    )?;
    let shown = limiter.show(&["status"])?;
    ensure!(
        shown.contains("FORWARDED COUNTED ONCE A SECOND: net.netfilter"),
        "{shown}"
    );
    let mut open = scene.fill(CLIENT)?;
    assert_tracked(&limiter, LIMIT as u64)?;
    scene.assert_full(CLIENT)?;
    drop(open.pop());
    open.push(scene.assert_room(CLIENT)?);
    set(host, "netfilter/nf_conntrack_events", "2")?;
    await_trouble(&limiter, "late", None)
}

/// Where no rule has the kernel track anything, the daemon says so.
#[test]
fn nothing_tracked_is_told() -> Result<()> {
    let _turn = take_turn();
    let forwarding = Forwarding::new()?;
    let server = Server::new(&forwarding.behind)?;
    let limiter = start(&forwarding.pair, &tracked("ipAddress"))?;
    await_trouble(&limiter, "error", Some("the kernel tracks none"))?;
    let shown = limiter.show(&["status"])?;
    ensure!(
        shown.contains("FORWARDED NOT COUNTED: the kernel"),
        "{shown}"
    );
    let log = limiter.log()?;
    ensure!(
        log.contains("connections that this host forwards are not counted: the kernel tracks none"),
        "{log}"
    );
    nft(&forwarding.pair.server, TRACK)?;
    let scene = Scene { forwarding, server };
    let _open = scene.fill(CLIENT)?;
    assert_tracked(&limiter, LIMIT as u64)?;
    await_trouble(&limiter, "error", None)
}

/// `limiter check` names the remedy where the host forwards.
#[test]
fn check_names_the_remedy() -> Result<()> {
    const TOLD: &str = "only connections of its own sockets count: with 'connections: tracked'";
    let _turn = take_turn();
    let forwarding = Forwarding::new()?;
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("limiter.yaml");
    for (configuration, is_told) in [
        (policy("ipAddress", ""), true),
        (tracked("ipAddress"), false),
        (
            policy("ipAddress", "").replace("match: {", "match: {destination: 10.77.0.1, "),
            false,
        ),
    ] {
        fs::write(&file, &configuration)?;
        let mut check = forwarding
            .pair
            .server
            .command(env!("CARGO_BIN_EXE_limiter"));
        let output = check.arg("check").arg(&file).output()?;
        let told = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{told}");
        ensure!(told.contains(TOLD) == is_told, "{configuration}: {told}");
    }
    Ok(())
}
