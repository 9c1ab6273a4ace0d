//! A sieve on a capture, with the pressure measured in the capture's time.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::{
    Frame,
    capture::{PCAP, Packet},
};

use crate::command::replay;

/// A sieve with three lists for 1000 packets a second; the limit itself would pass 100 000 at once.
const CONFIG: &str = "\
limits:
  All: {id: total, cost: packets, burst: 100000, count: 1000, period: 1s, ip-rep: main}
ip-rep:
  - {name: main, buckets: 3, size: 8, percentage: 60, perma-block: {limit: 500, threshold: 1}}
";

const MS: u64 = 1_000_000;

const BUSY: [u8; 4] = [10, 0, 0, 1];

/// For two seconds, `BUSY` sends every millisecond, and every 20 ms another source sends once. Ten
/// seconds later `BUSY` sends 100 packets, one every 10 ms.
fn capture() -> Result<Vec<u8>> {
    let packet = |ms: u64, source: [u8; 4]| {
        let frame = Frame::new(source.into(), [10, 9, 9, 9].into()).udp(1, 2, b"x")?;
        Ok::<_, anyhow::Error>(Packet::whole(ms * MS, frame))
    };
    let mut packets = Vec::new();
    for ms in 0..2000 {
        packets.push(packet(ms, BUSY)?);
        if ms % 20 == 0 {
            let host = u8::try_from(ms / 20)?;
            packets.push(packet(ms, [10, 0, 1, host])?);
        }
    }
    for number in 0..100 {
        packets.push(packet(12_000 + 10 * number, BUSY)?);
    }
    Ok(PCAP.write(&packets))
}

#[test]
fn the_busy_are_dropped_while_there_is_pressure() -> Result<()> {
    let capture = capture()?;
    let native = replay(CONFIG, &capture, false, &["--json"])?;
    ensure!(native.success, "{}", native.stderr);
    let lines = native.lines()?;
    let (last, packets) = lines.split_last().context("a summary")?;
    let summary = &last["summary"];
    let reason = |name: &str| summary["by_reason"][name].as_u64().context("a number");
    // From the first look at 50 ms on, 106 % or 105 % arrives, which is pressure 3, the highest.
    // `BUSY` then sends 1950 packets: the first enters the entry list, and the 501st hit moves it
    // to the perma-block list.
    assert_eq!(reason("iprep")?, 499, "{summary}");
    assert_eq!(reason("iprep_perma")?, 1450, "{summary}");
    assert_eq!(summary["dropped"], 1949);

    let sieve = &summary["sieves"][0];
    assert_eq!(sieve["sieve"], "main");
    assert_eq!(
        sieve["uses"],
        json!([{
            "limit": "All",
            // At 2050 ms, 79 % came in the last 200 ms: pressure 1; at 2100 ms 52.5 %.
            "under_pressure_ns": 2050 * MS,
            "highest_pressure": 3,
            "arrived": 2200,
            // Including the 97 quiet sources from 60 ms on.
            "scored": 1950 + 97,
            "iprep": 499,
            "iprep_perma": 1450,
        }])
    );
    assert_eq!(sieve["lists"][0]["busiest"][0]["id"], "10.0.0.1");
    let entries = |list: usize| sieve["lists"][list]["entries"].as_u64();
    let found: Vec<_> = (0..4).map(entries).collect();
    assert_eq!(found, [Some(1), Some(0), Some(0), Some(97)]);

    // All other packets passed, including `BUSY`'s when it sent less.
    let dropped: Vec<&Value> = packets
        .iter()
        .filter(|packet| packet["verdict"] == "drop")
        .collect();
    ensure!(dropped.iter().all(|packet| packet["limit"] == "All"));
    ensure!(
        dropped
            .iter()
            .all(|packet| packet["t_ns"].as_u64() < Some(2_000 * MS))
    );

    let kernel = replay(CONFIG, &capture, false, &["--json", "--engine", "kernel"])?;
    ensure!(kernel.success, "{}", kernel.stderr);
    assert_eq!(native.stdout, kernel.stdout);

    let shown = replay(CONFIG, &capture, false, &[])?.stdout;
    ensure!(shown.contains("\nsieve main\n"), "{shown}");
    ensure!(shown.contains("perma-block"), "{shown}");
    Ok(())
}

#[test]
fn a_sieve_for_all_packets_drops_for_no_limit() -> Result<()> {
    const SIEVE: &str = "\
ip-rep: [{name: all, buckets: 3, size: 8, percentage: 60, pressure: {packets-per-second: 1000}}]
";
    let shown = replay(SIEVE, &capture()?, false, &[])?.stdout;
    ensure!(!shown.contains("passed packets"), "{shown}");
    let dropped = shown
        .lines()
        .find(|line| line.starts_with("10.0.0.1 "))
        .context("a dropped source")?;
    ensure!(dropped.ends_with("  no limit"), "{shown}");
    Ok(())
}

#[test]
fn a_sieve_is_laid_out_for_the_cpus_of_another_machine() -> Result<()> {
    let capture = capture()?;
    for (cpus, said) in [("1", "for 1 CPU (--cpus)"), ("8", "for 8 CPUs (--cpus)")] {
        let shown = replay(CONFIG, &capture, false, &["--cpus", cpus])?.stdout;
        ensure!(shown.contains(said), "{shown}");
        let replayed = replay(CONFIG, &capture, false, &["--json", "--cpus", cpus])?;
        let lines = replayed.lines()?;
        let summary = &lines.last().context("a summary")?["summary"];
        assert_eq!(summary["cpus"].to_string(), cpus);
    }
    let refused = replay(CONFIG, &capture, false, &["--cpus", "0"])?;
    ensure!(
        !refused.success && refused.stderr.contains("--cpus"),
        "{}",
        refused.stderr
    );
    Ok(())
}

#[test]
fn without_sieves_nothing_is_said_of_them() -> Result<()> {
    let config = "limits: {PacketsPerIPAddress: {burst: 5, count: 1, period: 1s}}\n";
    let replayed = replay(config, &capture()?, false, &["--json"])?;
    let lines = replayed.lines()?;
    let summary = &lines.last().context("a summary")?["summary"];
    assert_eq!(summary.get("sieves"), None::<&Value>);
    assert_eq!(summary.get("cpus"), None::<&Value>);
    assert_eq!(summary["packets"], json!(2200));
    Ok(())
}
