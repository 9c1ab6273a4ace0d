//! Limits for a DNS server that dig queries: suggested from a capture and from the interface, then
//! enforced.

use std::{
    fs,
    net::IpAddr,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;
use testbed::{
    Limiter, Pair, Recorder, SERVER_INTERFACE,
    capture::{PCAPNG, Packet},
};

use super::{
    binary, program,
    server::{ADDRESS, Server},
    succeed,
};
use crate::{CLIENTS, PATIENCE, pair, server_for, wait};

const ASKING: Duration = Duration::from_secs(6);

/// All traffic is over after this long without a packet.
const SILENCE: Duration = Duration::from_millis(500);

/// Waits until a command watches the server's interface.
fn wait_for_a_watcher(pair: &Pair) -> Result<()> {
    wait(|| Ok(watchers(pair)? > 0))
}

/// Waits until no packet has come for a while: the last connections outlive their clients.
fn wait_for_silence(pair: &Pair) -> Result<()> {
    let mut received = pair.received()?;
    loop {
        thread::sleep(SILENCE);
        let now = pair.received()?;
        if now == received {
            return Ok(());
        }
        received = now;
    }
}

/// Returns how many packet sockets of the server's namespace receive all packets.
fn watchers(pair: &Pair) -> Result<usize> {
    let sockets =
        (pair.server).enter(|| Ok(fs::read_to_string("/proc/thread-self/net/packet")?))?;
    // A header line, then a line per socket; the fourth column is its protocol in hexadecimal.
    let lines = sockets.lines().skip(1);
    let gets = lines.filter(|line| line.split_whitespace().nth(3) == Some("0003"));
    Ok(gets.count())
}

/// Sends queries from each client's address, at different paces, sometimes over TCP.
fn ask(pair: &Pair) -> Result<()> {
    thread::scope(|scope| {
        let clients: Vec<_> = (CLIENTS.iter().enumerate())
            .map(|(number, client)| scope.spawn(move || ask_from(pair, number, client)))
            .collect();
        for client in clients {
            client.join().expect("no client panics")?;
        }
        Ok(())
    })
}

fn ask_from(pair: &Pair, number: usize, client: &str) -> Result<()> {
    let address = client.split('/').next().context("no address")?;
    let from: IpAddr = address.parse()?;
    let mut random = fastrand::Rng::with_seed(number as u64);
    let begun = Instant::now();
    while begun.elapsed() < ASKING {
        let mut dig = program::command(&pair.client, "dig")?;
        dig.args(["-b", address, &format!("@{}", server_for(from)?)]);
        dig.args(["+time=3", "+tries=3"]);
        dig.arg(if random.u8(0..4) == 0 {
            "+tcp"
        } else {
            "+notcp"
        });
        for _ in 0..random.u8(1..30) {
            dig.args([&format!("n{}.example.test", random.u16(..)), "A"]);
        }
        let printed = succeed(&mut dig)?;
        ensure!(printed.contains(ADDRESS), "{printed}");
        thread::sleep(Duration::from_millis(random.u64(20..300)));
    }
    Ok(())
}

fn suggest(arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.arg("suggest").args(arguments);
    command
}

fn limits<'t>(reported: &'t Value, service: &str) -> Result<&'t Vec<Value>> {
    let services = reported["services"].as_array();
    let mut services = services
        .with_context(|| format!("no services in {reported:#}"))?
        .iter();
    let found = services.find(|one| one["service"] == service);
    let limits = found.and_then(|found| found["limits"].as_array());
    limits.with_context(|| format!("no limits of {service} in {reported:#}"))
}

/// Returns the packets of a capture to a port of the server.
fn to_port_53(packets: &[Packet], protocol: u8) -> usize {
    let is_one = |packet: &&Packet| {
        let data = &packet.data;
        let ports = match data.get(12..14) {
            Some([0x08, 0x00]) if data[23] == protocol => 34,
            Some([0x86, 0xdd]) if data[20] == protocol => 54,
            _ => return false,
        };
        data[ports + 2..ports + 4] == 53_u16.to_be_bytes()
    };
    packets.iter().filter(is_one).count()
}

#[test]
fn limits_of_a_dns_server() -> Result<()> {
    let pair = pair()?;
    pair.compute_checksums()?;
    let _server = Server::nsd(&pair)?;

    let mut watching = pair.server.command(binary());
    let watching = watching.args(["suggest", "-i", SERVER_INTERFACE, "--for", "10m", "--json"]);
    let watching = watching
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    wait_for_a_watcher(&pair)?;
    let recorder = Recorder::new(&pair.server, SERVER_INTERFACE)?;
    ask(&pair)?;
    wait_for_silence(&pair)?;
    let packets = recorder.finish()?;
    // Ctrl-C ends it with a result.
    kill(Pid::from_raw(watching.id().try_into()?), Signal::SIGINT)?;
    let watched = watching.wait_with_output()?;
    ensure!(watched.status.success(), "{watched:?}");
    let watched: Value = serde_json::from_slice(&watched.stdout)?;

    let directory = tempfile::tempdir()?;
    let capture = directory.path().join("dns.pcapng");
    fs::write(&capture, PCAPNG.write(&packets))?;
    let capture = capture.to_str().context("a strange path")?;
    let captured = succeed(&mut suggest(&[capture, "--json"]))?;
    let captured: Value = serde_json::from_str(&captured)?;

    for reported in [&watched, &captured] {
        let services = reported["services"].as_array().context("no services")?;
        for (service, protocol) in [("udp/53", 17), ("tcp/53", 6)] {
            let found = services.iter().find(|one| one["service"] == service);
            let found = found.with_context(|| format!("no {service} in {reported:#}"))?;
            assert_eq!(
                found["packets"],
                to_port_53(&packets, protocol),
                "{found:#}"
            );
            assert_eq!(found["sources"], CLIENTS.len());
        }
    }

    // With head room the limits observe, and would drop no client that keeps its pace.
    let configuration = succeed(&mut suggest(&[capture]))?;
    let limiter = Limiter::start(
        binary(),
        &pair.server,
        &configuration,
        &["-i", SERVER_INTERFACE],
    )?;
    ask(&pair)?;
    let running = limiter.show(&["suggest", "--running", "--json"])?;
    let running: Value = serde_json::from_str(&running)?;
    for limit in limits(&captured, "udp/53")? {
        let judged = running.as_array().context("no limits")?.iter();
        let mut judged = judged.filter(|one| one["limit"] == limit["name"]);
        let judged = judged
            .next()
            .with_context(|| format!("no {}", limit["name"]))?;
        let packets = judged["packets"].as_u64().context("no packets")?;
        assert!(packets > 100, "{judged}");
        let share = judged["fraction"].as_f64().context("no fraction")?;
        assert!(share < 0.05 && judged["mode"] == "observe", "{judged}");
    }
    ensure!(limiter.stop()?.success());
    Ok(())
}

/// An interface that cannot be watched causes an error of one line.
#[test]
fn an_interface_that_cannot_be_watched() -> Result<()> {
    let pair = pair()?;
    for (name, reported) in [
        ("nowhere", "no interface is named 'nowhere'"),
        ("lo", "lo has only this host's own packets"),
    ] {
        let mut command = pair.server.command(binary());
        let output = command
            .args(["suggest", "-i", name, "--for", "1s"])
            .output()?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(
            stderr.contains(reported) && stderr.lines().count() == 1,
            "{stderr}"
        );
    }
    // Without packets there is no suggestion, and the command still ends in time.
    let begun = Instant::now();
    let mut command = pair.server.command(binary());
    let output = command
        .args(["suggest", "-i", SERVER_INTERFACE, "--for", "1s"])
        .output()?;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(begun.elapsed() < PATIENCE);
    Ok(())
}
