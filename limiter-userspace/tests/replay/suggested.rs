//! Runs `limiter suggest` on captures, as a user does.

use std::{
    io::Write as _,
    process::{Command, Output, Stdio},
    thread,
};

use anyhow::{Context as _, Result, ensure};
use fastrand::Rng;
use serde_json::Value;
use testbed::{
    Frame,
    capture::{PCAP, PCAPNG, Packet},
};

use crate::command::replay;

const HOST: &str = "192.0.2.1";
const MS: u64 = 1_000_000;
const SECONDS: u64 = 100;

fn limiter(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_limiter"));
    command.args(arguments);
    command
}

fn text(bytes: Vec<u8>) -> Result<String> {
    Ok(String::from_utf8(bytes)?)
}

/// Runs `limiter suggest` on a capture in a file.
fn suggest(capture: &[u8], arguments: &[&str]) -> Result<Output> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("capture");
    std::fs::write(&file, capture)?;
    let mut command = limiter(&["suggest"]);
    Ok(command.arg(file).args(arguments).output()?)
}

/// Returns a suggestion as JSON.
fn suggestion(capture: &[u8], arguments: &[&str]) -> Result<Value> {
    let output = suggest(capture, &[arguments, &["--json"]].concat())?;
    ensure!(output.status.success(), "{output:?}");
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn assert_fails(output: &Output, code: i32, reported: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    assert!(stderr.contains(reported), "{stderr}");
}

/// Turns a frame to the host into one from it, by swapping the Ethernet addresses.
fn sent_back(mut frame: Vec<u8>) -> Vec<u8> {
    let (to, from) = frame.split_at_mut(6);
    to.swap_with_slice(&mut from[..6]);
    frame
}

/// The packets of a web and DNS server, both ways: 40 clients in ten /24s send queries and open
/// connections; the server sends queries of its own.
fn packets() -> Result<Vec<Packet>> {
    let mut random = Rng::with_seed(4);
    let mut packets = Vec::new();
    let host = HOST.parse()?;
    for client in 0..40_u8 {
        let address = format!("198.51.{}.{}", client / 4, client % 4).parse()?;
        let (to, from) = (Frame::new(address, host), Frame::new(host, address));
        let mut at = 0;
        while at < SECONDS * 1000 * MS {
            at += random.u64(1..1000) * MS;
            let port = random.u16(32768..61000);
            if random.bool() {
                packets.push((at, to.udp(port, 53, b"question")?));
                packets.push((at + MS, sent_back(from.udp(53, port, b"answer")?)));
            } else {
                packets.push((at, to.tcp_syn(port, 443, 7)?));
                packets.push((at + MS, sent_back(from.tcp_ack(443, port, 9, 8)?)));
                packets.push((at + 2 * MS, to.tcp_ack(port, 443, 8, 10)?));
            }
        }
        // The host's own queries to the client's resolver, and the replies.
        packets.push((at, sent_back(from.udp(40_000, 53, b"question")?)));
        packets.push((at + MS, to.udp(53, 40_000, b"answer")?));
    }
    packets.sort_by_key(|(at, _)| *at);
    let packets = packets.into_iter();
    Ok(packets
        .map(|(at, frame)| Packet::whole(at, frame))
        .collect())
}

/// Sets SYN on the segments of `tcp_ack`: the second segment of a handshake.
fn with_syn(mut packets: Vec<Packet>) -> Vec<Packet> {
    const FLAGS: usize = 14 + 20 + 13;
    for packet in &mut packets {
        let is_tcp = packet.data[23] == 6;
        let from_443 = packet.data[34..36] == 443_u16.to_be_bytes();
        if is_tcp && from_443 {
            packet.data[FLAGS] |= 2;
        }
    }
    packets
}

fn capture() -> Result<Vec<u8>> {
    Ok(PCAP.write(&with_syn(packets()?)))
}

fn limits(suggestion: &Value) -> Result<Vec<&Value>> {
    let services = suggestion["services"].as_array().context("no services")?;
    let limits = services.iter().filter_map(|one| one["limits"].as_array());
    Ok(limits.flatten().collect())
}

/// The suggested limits are valid unchanged, only observe, and match the estimate.
#[test]
fn a_configuration_that_observes() -> Result<()> {
    let capture = capture()?;
    let arguments = ["--pass", "97", "--headroom", "1"];
    let output = suggest(&capture, &arguments)?;
    ensure!(output.status.success(), "{output:?}");
    let yaml = text(output.stdout)?;
    assert!(
        yaml.lines().all(|line| line.chars().count() <= 110),
        "{yaml}"
    );

    let directory = tempfile::tempdir()?;
    let file = directory.path().join("suggested.yaml");
    std::fs::write(&file, &yaml)?;
    let checked = limiter(&["check", "--json"]).arg(&file).output()?;
    ensure!(checked.status.success(), "{checked:?}\n{yaml}");
    let checked: Value = serde_json::from_slice(&checked.stdout)?;
    let checked = checked["limits"].as_array().context("no limits")?;
    assert!(
        checked.iter().all(|limit| limit["mode"] == "observe"),
        "{yaml}"
    );

    let reported = suggestion(&capture, &arguments)?;
    let limits = limits(&reported)?;
    assert_eq!(limits.len(), checked.len());
    // Per address, per /24 and in total: for DNS packets, HTTPS packets and HTTPS connections.
    assert_eq!(limits.len(), 9, "{yaml}");
    // The replay and `--check` give the same verdict for each packet.
    let replayed = replay(&yaml, &incoming()?, false, &["--json"])?;
    let last = replayed.lines()?.pop().context("no summary")?;
    let summary = &last["summary"];
    let mut output = limiter(&["suggest", "--json", "--pass", "97", "--check"]);
    let path = directory.path().join("capture");
    std::fs::write(&path, &capture)?;
    let output = output.arg(&file).arg(path).output()?;
    ensure!(output.status.success(), "{output:?}");
    let fits: Value = serde_json::from_slice(&output.stdout)?;
    let fits = fits["limits"].as_array().context("no limits")?;
    let mut dropped = 0;
    for limit in limits {
        let name = limit["name"].as_str().context("no name")?;
        let drops = &limit["drops"];
        let by_replay = &summary["by_limit"][name]["would_drop"];
        let fit = fits.iter().find(|fit| fit["limit"] == name);
        let fit = fit.with_context(|| format!("{name} is not judged"))?;
        assert_eq!(fit["would_drop"], drops["dropped"], "{name}");
        assert_eq!(fit["packets"], drops["packets"], "{name}");
        assert_eq!(by_replay, &drops["dropped"], "{name}: {summary}");
        assert_eq!(fit["fit"], "fits", "{fit}");
        dropped += drops["dropped"].as_u64().context("no number")?;
    }
    assert!(dropped > 50, "{dropped}");
    Ok(())
}

/// Returns the packets to the host, the only ones that XDP sees. A cost named twice must not create
/// a limit twice, because a configuration cannot repeat a name.
#[test]
fn a_cost_named_twice() -> Result<()> {
    let capture = capture()?;
    let names = |costs| -> Result<Vec<String>> {
        let suggestion = suggestion(&capture, &["--cost", costs])?;
        let limits = limits(&suggestion)?;
        Ok(limits
            .iter()
            .map(|limit| limit["name"].to_string())
            .collect())
    };
    let once = names("packets,bytes")?;
    assert!(once.len() >= 2, "{once:?}");
    assert_eq!(names("packets,bytes,packets")?, once);
    Ok(())
}

fn incoming() -> Result<Vec<u8>> {
    let to_host = |packet: &Packet| packet.data[30..34] == [192, 0, 2, 1];
    let packets = with_syn(packets()?).into_iter().filter(to_host);
    Ok(PCAP.write(&packets.collect::<Vec<_>>()))
}

/// Only services of the host get limits, not the peers of its own queries.
#[test]
fn services_are_what_the_host_answers() -> Result<()> {
    let reported = suggestion(&capture()?, &[])?;
    let services = reported["services"].as_array().context("no services")?;
    let mut names: Vec<_> = services.iter().map(|one| one["service"].clone()).collect();
    names.sort_by_key(ToString::to_string);
    assert_eq!(names, ["tcp/443", "udp/53"]);
    assert_eq!(reported["ways"]["unserved"], 40);
    assert!(
        services
            .iter()
            .all(|one| one["sources"] == 40 && one["one_in"] == 1)
    );
    assert_eq!(reported["warnings"], Value::Array(Vec::new()));
    // A service by its name alone, and with the host's address.
    for (arguments, expected) in [
        (&["--service", "udp/53"][..], 1),
        (&["--host", HOST], 2),
        (&["--host", HOST, "--service", "tcp/443,udp/53"], 2),
    ] {
        let reported = suggestion(&capture()?, arguments)?;
        let services = reported["services"].as_array().context("no services")?;
        assert_eq!(services.len(), expected, "{arguments:?}");
    }
    Ok(())
}

/// One direction alone shows less, and the output says so.
#[test]
fn one_direction_is_a_guess() -> Result<()> {
    let reported = suggestion(&incoming()?, &[])?;
    let warnings = reported["warnings"].to_string();
    assert!(warnings.contains("is a guess"), "{warnings}");
    assert_eq!(limits(&reported)?.len(), 9);
    Ok(())
}

#[test]
fn every_format_and_standard_input() -> Result<()> {
    let packets = with_syn(packets()?);
    let expected = suggestion(&PCAP.write(&packets), &[])?;
    let reported = suggestion(&PCAPNG.write(&packets), &[])?;
    assert_eq!(limits(&reported)?, limits(&expected)?);
    let mut child = limiter(&["suggest", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = child.stdin.take().context("no standard input")?;
    let bytes = PCAP.write(&packets);
    let writer = thread::spawn(move || input.write_all(&bytes));
    let output = child.wait_with_output()?;
    writer.join().expect("the writer does not panic")?;
    let reported: Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(limits(&reported)?, limits(&expected)?);
    Ok(())
}

/// A truncated file still gives a result, with a note that it ends early.
#[test]
fn spoilt_captures() -> Result<()> {
    let whole = capture()?;
    let output = suggest(&whole[..whole.len() - 7], &[])?;
    assert_fails(&output, 1, "the capture is cut short");
    assert!(text(output.stdout)?.contains("Udp53PacketsPerIPAddress:"));
    for (capture, reported) in [
        (&b""[..], "not a capture: the file is empty"),
        (b"no capture", "not a capture"),
        (&PCAP.write(&[]), "has no packets"),
        (&PCAP.write(&with_syn(packets()?)[..30]), "too few packets"),
        (
            &PCAP.write(&[Packet::whole(0, vec![0; 60])]),
            "none of the 1 packet of",
        ),
    ] {
        let output = suggest(capture, &[])?;
        assert_fails(&output, 1, reported);
        assert!(output.stdout.is_empty());
    }
    Ok(())
}

/// A million forged sources take bounded time and memory, and are reported.
#[test]
fn a_forged_flood() -> Result<()> {
    let mut random = Rng::with_seed(5);
    let mut flood = with_syn(packets()?);
    let host = HOST.parse()?;
    let frame = Frame::new("203.0.113.1".parse()?, host).udp(4000, 53, b"question")?;
    for n in 0..300_000_u64 {
        let mut frame = frame.clone();
        frame[26..30].copy_from_slice(&random.u32(1 << 24..).to_be_bytes());
        flood.push(Packet::whole(50_000 * MS + n * 10_000, frame));
    }
    flood.sort_by_key(|packet| packet.time_ns);
    let reported = suggestion(&PCAP.write(&flood), &["--service", "udp/53"])?;
    let service = &reported["services"][0];
    assert!(service["one_in"].as_u64() >= Some(4), "{service}");
    assert!(service["sources"].as_u64() <= Some(65_536), "{service}");
    let warnings = reported["warnings"].to_string();
    assert!(
        warnings.contains("sources sent one packet each"),
        "{warnings}"
    );
    assert!(warnings.contains("packets came in second"), "{warnings}");
    Ok(())
}

/// How a configuration fits the captured packets.
#[test]
fn a_configuration_is_judged() -> Result<()> {
    let configuration = "\
limits:
  Tight: {id: total, cost: packets, match: {protocol: udp, destination-port: 53},
    burst: 10, count: 10, period: 1s}
  Wide: {id: ipAddress, cost: packets, burst: 100000, count: 100000, period: 1s}
  Window: {id: ipAddress, cost: packets, strategy: fixed-window, count: 30, period: 1s}
  Nothing: {id: total, cost: packets, match: {protocol: tcp, destination-port: 22},
    burst: 10, count: 10, period: 1s, mode: observe}
";
    let directory = tempfile::tempdir()?;
    let file = |name: &str, content: &[u8]| -> Result<String> {
        let path = directory.path().join(name);
        std::fs::write(&path, content)?;
        Ok(path.display().to_string())
    };
    let config = file("limiter.yaml", configuration.as_bytes())?;
    let capture = file("capture", &capture()?)?;
    let output = limiter(&["suggest", "--check", &config, &capture, "--json"]).output()?;
    ensure!(output.status.success(), "{output:?}");
    let reported: Value = serde_json::from_slice(&output.stdout)?;
    let fit = |name: &str| {
        let limits = reported["limits"].as_array().into_iter().flatten();
        let mut limits = limits.filter(|limit| limit["limit"] == name);
        limits
            .next()
            .map(|limit| (limit["fit"].clone(), limit["mode"].clone()))
    };
    let is = |fit: &str, mode: &str| Some((Value::from(fit), Value::from(mode)));
    assert_eq!(fit("Tight"), is("tight", "enforce"));
    assert_eq!(fit("Wide"), is("wide", "enforce"));
    assert_eq!(fit("Window"), is("fits", "enforce"));
    assert_eq!(fit("Nothing"), is("unmatched", "observe"));
    // A limit that drops packets does not lower the counts of the other limits.
    let wide = reported["limits"].as_array().context("no limits")?;
    let wide = wide.iter().find(|limit| limit["limit"] == "Wide");
    assert_eq!(wide.context("no Wide")?["packets"], reported["packets"]);

    let output = limiter(&["suggest", "--check", &config, &capture]).output()?;
    let shown = text(output.stdout)?;
    for what in [
        "too tight: drops more than 0.1 %",
        "too wide",
        "no packet matches it",
    ] {
        assert!(shown.contains(what), "{shown}");
    }
    let missing = limiter(&["suggest", "--check", "/nowhere", &capture]).output()?;
    assert_fails(&missing, 1, "/nowhere");
    Ok(())
}

/// A name cannot break out of its comment.
#[test]
fn a_strange_name() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let name = directory.path().join("x\nlimits: {Evil: 1}\n#");
    std::fs::write(&name, capture()?)?;
    let output = limiter(&["suggest"]).arg(&name).output()?;
    let yaml = text(output.stdout)?;
    assert!(
        !yaml.lines().any(|line| line.starts_with("limits: {")),
        "{yaml}"
    );
    let file = directory.path().join("suggested.yaml");
    std::fs::write(&file, yaml)?;
    let checked = limiter(&["check"]).arg(&file).output()?;
    ensure!(checked.status.success(), "{checked:?}");
    Ok(())
}

#[test]
fn wrong_usage() -> Result<()> {
    for arguments in [
        &[][..],
        &["a", "-i", "eth0"],
        &["a", "--for", "1m"],
        &["-i", "eth0", "--for", "1"],
        &["a", "--pass", "101"],
        &["a", "--headroom", "0.5"],
        &["a", "--service", "53"],
        &["a", "--host", "host"],
        &["a", "--cost", "money"],
        &["--check", "file"],
        &["--check", "file", "-i", "eth0"],
        &["--check", "file", "a", "--headroom", "3"],
        &["--running", "a"],
        &["--running", "--cost", "bytes"],
    ] {
        let output = limiter(&["suggest"]).args(arguments).output()?;
        assert_fails(&output, 2, "--help");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    let output = limiter(&["suggest", "/nowhere/a"]).output()?;
    assert_fails(&output, 1, "cannot open the capture /nowhere/a");
    let nowhere = ["--socket", "/nowhere/s", "--pin", "/nowhere/p"];
    let output = limiter(&["suggest", "--running"]).args(nowhere).output()?;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    Ok(())
}
