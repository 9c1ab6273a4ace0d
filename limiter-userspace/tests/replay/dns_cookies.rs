//! DNS cookies in a capture: checked with the server's secrets and the capture's times.

use std::net::IpAddr;

use anyhow::{Context as _, Result, ensure};
use limiter_common::cookie::Secret;
use serde_json::{Value, json};
use testbed::{
    Frame,
    capture::{PCAP, Packet},
    dns_cookie, dns_cookie_query,
};

use crate::command::{Replayed, replay};

const OURS: &str = "e5e973e5a6b2a43f48e7dc849e37bfcf";
const THEIRS: &str = "445536bcd2513298075a5d379663c962";

/// The start of the capture, in seconds of Unix time.
const BEGIN: u32 = 1_790_000_000;
const SECOND: u64 = 1_000_000_000;

const SERVER: [u8; 4] = [198, 51, 100, 1];

/// Writes the secret to a file, and returns a configuration that names it. Unknown sources may use one packet; the rest
/// is reserved.
fn configuration(directory: &tempfile::TempDir, secret: &str) -> Result<String> {
    let file = directory.path().join("secret");
    std::fs::write(&file, format!("{secret}\n"))?;
    Ok(format!(
        "dns-cookies: {{secret-file: {}}}
limits:
  Queries: {{id: total, cost: packets, burst: 10, count: 1, period: 10h, match: {{protocol: udp}},
    reserve: {{fresh: 2, retried: 9, unknown: 9}}}}
",
        file.display()
    ))
}

/// Returns a query at this time after the start, with a cookie that was made by `secret` `age` seconds before.
fn query(at: u32, from: IpAddr, cookie_of: IpAddr, secret: &str, age: u32) -> Result<Packet> {
    let secret = u128::from_str_radix(secret, 16)?.to_be_bytes();
    let secret = Secret::new(secret).context("no secret")?;
    let cookie = dns_cookie(&secret, cookie_of, BEGIN + at - age);
    let query = dns_cookie_query(&cookie);
    let frame = Frame::new(from, SERVER.into()).udp(4321, 53, &query)?;
    Ok(Packet::whole(u64::from(BEGIN + at) * SECOND, frame))
}

fn client(number: u8) -> IpAddr {
    [192, 0, 2, number].into()
}

fn capture() -> Result<Vec<u8>> {
    let packets = [
        // Uses up the unreserved packet.
        query(0, client(1), client(1), THEIRS, 0)?,
        // A valid cookie, another client's, another server's, and an expired one.
        query(1, client(2), client(2), OURS, 3_600)?,
        query(2, client(3), client(2), OURS, 0)?,
        query(3, client(4), client(4), THEIRS, 0)?,
        query(4, client(5), client(5), OURS, 3_601)?,
        // One of these clients asks again with a valid cookie, two hours later by the capture's times.
        query(7_200, client(5), client(5), OURS, 0)?,
        // A truncated packet proves nothing: its missing bytes may be wrong.
        query(7_201, client(6), client(6), OURS, 0)?.cut_to(90),
        // A source that has shown a valid cookie stays proven without another one.
        query(7_202, client(5), client(5), THEIRS, 0)?,
    ];
    Ok(PCAP.write(&packets))
}

fn reported(replayed: &Replayed) -> Result<(Vec<Value>, Value)> {
    ensure!(replayed.success, "{}", replayed.stderr);
    let mut lines = replayed.lines()?;
    let summary = lines.pop().context("a summary")?["summary"].clone();
    let packets = lines.iter().map(|line| {
        let [reason, standing] = [&line["reason"], &line["standing"]];
        json!([reason, standing])
    });
    Ok((packets.collect(), summary))
}

#[test]
fn cookies_are_checked_at_the_capture_s_times() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let config = configuration(&directory, OURS)?;
    let capture = capture()?;
    let native = replay(&config, &capture, false, &["--json"])?;
    let (packets, summary) = reported(&native)?;
    let expected = [
        ["within_limits", "unknown"],
        ["within_limits", "fresh"],
        ["reserved", "unknown"],
        ["reserved", "unknown"],
        ["reserved", "unknown"],
        ["within_limits", "fresh"],
        ["reserved", "unknown"],
        ["within_limits", "fresh"],
    ];
    ensure!(json!(packets) == json!(expected), "{packets:#?}");
    ensure!(summary["known_by"]["valid_dns_cookies"] == 2, "{summary:#}");
    let kernel = replay(&config, &capture, false, &["--json", "--engine", "kernel"])?;
    ensure!(kernel.success, "{}", kernel.stderr);
    ensure!(kernel.stdout == native.stdout, "{}", kernel.stdout);

    let text = replay(&config, &capture, false, &[])?.stdout;
    ensure!(text.contains(", 2 valid DNS cookies"), "{text}");
    for output in [&native.stdout, &native.stderr, &text] {
        ensure!(!output.contains(&OURS[..8]), "{output}");
    }
    Ok(())
}

#[test]
fn with_another_secret_or_none_nobody_is_proven() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let config = configuration(&directory, "000102030405060708090a0b0c0d0e0f")?;
    let capture = capture()?;
    let (packets, summary) = reported(&replay(&config, &capture, false, &["--json"])?)?;
    let passed = packets.iter().filter(|packet| packet[0] == "within_limits");
    ensure!(passed.count() == 1, "{packets:#?}");
    ensure!(summary["known_by"]["valid_dns_cookies"] == 0, "{summary:#}");

    let bad = configuration(&directory, "no secret")?;
    let refused = replay(&bad, &capture, false, &[])?;
    ensure!(!refused.success);
    let lines: Vec<_> = refused.stderr.lines().collect();
    let [line] = lines[..] else {
        anyhow::bail!("{}", refused.stderr);
    };
    ensure!(line.contains("has no secret in line 1"), "{line}");
    ensure!(refused.stdout.is_empty(), "{}", refused.stdout);
    Ok(())
}
