//! `limiter names` on captures that no real client produced.

use std::{
    io::Write as _,
    process::{Command, Output, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::{
    Frame,
    capture::{PCAP, Packet},
};

fn names(capture: &[u8], arguments: &[&str]) -> Result<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_limiter"));
    command.args(["names", "-"]).args(arguments);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let mut stdin = child.stdin.take().context("no input")?;
    // The command may have stopped reading at an error.
    let _ = stdin.write_all(capture);
    drop(stdin);
    Ok(child.wait_with_output()?)
}

fn request(client: &str, host: &str) -> Result<Vec<u8>> {
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let frame = Frame::new(client.parse()?, "10.0.0.1".parse()?);
    frame.tcp_data(5000, 80, (100, 8), request.as_bytes())
}

fn capture() -> Result<Vec<u8>> {
    let mut frames = Vec::new();
    for number in 1..=3 {
        frames.push(request(&format!("10.0.0.{number}0"), "Shop.example:80")?);
    }
    frames.push(request(
        "10.0.0.40",
        &format!("{}.example", "long-".repeat(10)),
    )?);
    frames.push(request("10.0.0.50", "\u{1b}[31mred")?);
    frames.push(Frame::new("10.0.0.60".parse()?, "10.0.0.1".parse()?).udp(5000, 53, b"?")?);
    let packets = frames.into_iter().zip(1..);
    let packets = packets.map(|(frame, second)| Packet::whole(second * 1_000_000_000, frame));
    Ok(PCAP.write(&packets.collect::<Vec<_>>()))
}

#[test]
fn names_and_reasons_are_listed() -> Result<()> {
    let output = names(&capture()?, &["--json"])?;
    let document: Value = serde_json::from_slice(&output.stdout)?;
    let long = format!("{}.example", "long-".repeat(10));
    let expected = json!({
        "packets": 6, "truncated_packets": 0, "packets_of_flows_not_followed": 0, "silent_flows": 0,
        "names": [
            {"name": "shop.example", "how": "http1", "flows": 3, "packets": 3, "bytes": 285,
             "may_be_outer": 0, "applications": []},
            {"name": long, "how": "http1", "flows": 1, "packets": 1, "bytes": 138,
             "may_be_outer": 0, "applications": []},
        ],
        "unread": [
            {"reason": "foreign", "flows": 1, "packets": 1, "bytes": 43,
             "meaning": "neither TLS, QUIC nor HTTP"},
            {"reason": "no-beginning", "flows": 1, "packets": 1, "bytes": 88,
             "meaning": "the connection's beginning was not seen"},
        ],
    });
    assert_eq!(document, expected);
    Ok(())
}

#[test]
fn tables_are_narrow_and_harmless() -> Result<()> {
    let output = names(&capture()?, &["--count", "1"])?;
    let text = String::from_utf8(output.stdout)?;
    ensure!(
        text.contains("shop.example") && text.contains("and 1 other name"),
        "{text}"
    );
    ensure!(
        !text.contains("long-") && !text.contains('\u{1b}'),
        "{text}"
    );
    let output = names(&capture()?, &[])?;
    let text = String::from_utf8(output.stdout)?;
    ensure!(text.contains("…-long-"), "{text}");
    ensure!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    Ok(())
}

#[test]
fn what_was_read_is_told_before_an_error() -> Result<()> {
    let capture = capture()?;
    let output = names(&capture[..capture.len() - 10], &[])?;
    ensure!(!output.status.success());
    let text = String::from_utf8(output.stdout)?;
    ensure!(text.contains("shop.example"), "{text}");
    let reported = String::from_utf8(output.stderr)?;
    ensure!(
        reported.starts_with("the capture is cut short"),
        "{reported}"
    );
    Ok(())
}
