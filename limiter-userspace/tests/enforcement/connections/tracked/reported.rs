//! Lost events: polls find the changes that the kernel does not report, and the status reports the cases that stay
//! unknown.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use testbed::{CLIENT_INTERFACE, Frame, Limiter, RawSender};

use super::{
    super::{CLIENT, LIMIT, PATIENCE, PORT, Server, policy, start},
    SERVER, Scene, TRACK, assert_tracked, tracked,
};
use crate::{
    forwarding::{Forwarding, nft, set},
    wait,
};

/// Connections that open and close while the daemon is stopped. Four events each, of a kilobyte, exceed the socket's
/// eight megabytes.
const UNHEARD: usize = 4000;

/// The client of these connections.
const MANY: &str = "fd77:1:1:2::1";

const OTHER: &str = "10.77.0.3";

/// Returns the status's warning about counting forwarded connections.
fn warning(limiter: &Limiter, which: &str) -> Result<Option<String>> {
    let status = limiter.status()?;
    let reported = status["daemon"]["tracking"][which].as_str();
    Ok(reported.map(str::to_owned))
}

fn await_warning(limiter: &Limiter, which: &str, expected: Option<&str>) -> Result<()> {
    let is_so = || {
        Ok(match (warning(limiter, which)?, expected) {
            (Some(reported), Some(expected)) => reported.contains(expected),
            (reported, expected) => reported.is_none() && expected.is_none(),
        })
    };
    wait(is_so).with_context(|| format!("not {expected:?}"))
}

/// The daemon's socket for events, the only one in its namespace.
struct EventSocket {
    /// How many bytes are queued in it.
    waiting: u64,
    /// How many events the kernel has dropped.
    lost: u64,
}

impl EventSocket {
    fn look(scene: &Scene) -> Result<Self> {
        const NETFILTER: &str = "12";
        const NO_GROUPS: &str = "00000000";
        let table = scene.forwarding.pair.server.enter(|| {
            fs::read_to_string("/proc/thread-self/net/netlink").context("cannot read net/netlink")
        })?;
        let mut lines = table
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>());
        let columns = lines.find(|columns| columns[1] == NETFILTER && columns[3] != NO_GROUPS);
        let columns = columns.with_context(|| format!("no socket for events:\n{table}"))?;
        Ok(Self {
            waiting: columns[4].parse()?,
            lost: columns[8].parse()?,
        })
    }
}

/// Fails unless these addresses soon have these numbers open.
fn assert_open(limiter: &Limiter, expected: &[(&str, usize)]) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        let mut found = Vec::new();
        for (address, _) in expected {
            let explained = limiter.explain(address)?;
            let open = explained["limits"][0]["connections"].as_u64();
            found.push((*address, open.context("it is counted")?.try_into()?));
        }
        if found == expected {
            return Ok(());
        }
        ensure!(Instant::now() < end, "{found:?} are open, not {expected:?}");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn lost_events_leave_no_count() -> Result<()> {
    let scene = Scene::new()?;
    let limiter = scene.start(&tracked("ipAddress"))?;
    let mut held = scene.fill(CLIENT)?;
    assert_tracked(&limiter, LIMIT as u64)?;
    // The family's first packet waits for neighbour discovery.
    drop(scene.assert_room(MANY)?);
    assert_tracked(&limiter, LIMIT as u64)?;
    limiter.signal(Signal::SIGSTOP)?;
    // Among very many connections, a counted one ends, and another address opens one.
    drop(held.pop());
    let other = scene.open(OTHER)?;
    for number in 0..UNHEARD {
        let opened = scene.open(MANY);
        drop(opened.with_context(|| format!("connection {number}"))?);
    }
    let lost = EventSocket::look(&scene)?.lost;
    println!("{lost} events were lost");
    limiter.signal(Signal::SIGCONT)?;
    ensure!(lost > 0, "no event was lost");
    assert_open(&limiter, &[(CLIENT, LIMIT - 1), (OTHER, 1), (MANY, 0)])?;
    held.push(scene.assert_room(CLIENT)?);
    assert_open(&limiter, &[(CLIENT, LIMIT), (OTHER, 1), (MANY, 0)])?;
    scene.assert_full(CLIENT)?;
    drop((held, other));
    assert_tracked(&limiter, 0)
}

/// The kernel reports only established connections, so a flood of SYNs does not fill the socket.
#[test]
fn forged_syns_are_no_events() -> Result<()> {
    const SYNS: u16 = 4000;
    let scene = Scene::new()?;
    let limiter = scene.start(&tracked("ipAddress"))?;
    let _open = scene.fill(CLIENT)?;
    assert_tracked(&limiter, LIMIT as u64)?;
    limiter.signal(Signal::SIGSTOP)?;
    let client = &scene.forwarding.pair.client;
    let frame = Frame::new("10.77.0.99".parse()?, SERVER.parse()?);
    let syns = (1000..1000 + SYNS).map(|port| frame.tcp_syn(port, PORT, 1));
    let syns: Vec<_> = syns.collect::<Result<_>>()?;
    RawSender::new(client, CLIENT_INTERFACE)?.send_frames(&syns)?;
    thread::sleep(Duration::from_secs(1));
    let host = &scene.forwarding.pair.server;
    let entries = host.enter(|| {
        let table = fs::read_to_string("/proc/thread-self/net/nf_conntrack")?;
        Ok(table.matches("SYN_RECV").count())
    })?;
    let events = EventSocket::look(&scene)?;
    limiter.signal(Signal::SIGCONT)?;
    ensure!(entries > 500, "only {entries} are tracked");
    ensure!(
        (events.waiting, events.lost) == (0, 0),
        "{} wait",
        events.waiting
    );
    // Established connections are reported.
    limiter.signal(Signal::SIGSTOP)?;
    let _other = scene.open(OTHER)?;
    let events = EventSocket::look(&scene)?;
    limiter.signal(Signal::SIGCONT)?;
    ensure!(events.waiting > 0, "nothing is heard");
    assert_tracked(&limiter, LIMIT as u64 + 1)
}

/// Without events, polls count once a second, and the daemon says so.
#[test]
fn without_events_looks_count() -> Result<()> {
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
    await_warning(
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
    await_warning(&limiter, "late", None)
}

/// Without a rule that makes the kernel track connections, the daemon says so.
#[test]
fn nothing_tracked_is_told() -> Result<()> {
    let forwarding = Forwarding::new()?;
    let server = Server::new(&forwarding.behind)?;
    let limiter = start(&forwarding.pair, &tracked("ipAddress"))?;
    await_warning(&limiter, "error", Some("the kernel tracks none"))?;
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
    await_warning(&limiter, "error", None)
}

/// `limiter check` names the remedy on a host that forwards.
#[test]
fn check_names_the_remedy() -> Result<()> {
    const REPORTED: &str = "only connections of its own sockets count: with 'connections: tracked'";
    let forwarding = Forwarding::new()?;
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("limiter.yaml");
    for (configuration, is_reported) in [
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
        let reported = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{reported}");
        ensure!(
            reported.contains(REPORTED) == is_reported,
            "{configuration}: {reported}"
        );
    }
    Ok(())
}
