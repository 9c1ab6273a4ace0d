//! A running daemon's offenders: the most dropped sources.

use std::{net::IpAddr, path::Path};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Pair, RawSender, SERVER_INTERFACE};

use crate::{BINARY, assert_fails, pair, wait_for};

const CONFIGURATION: &str = "\
limits:
  PacketsPerIPAddress: {burst: 3, count: 1, period: 1h}
  BytesPerIPv6Range: {burst: 2000, count: 1, period: 1h}
";

fn start(pair: &Pair, configuration: &str) -> Result<Limiter> {
    let arguments = ["-i", SERVER_INTERFACE, "--metrics", "off"];
    Limiter::start(Path::new(BINARY), &pair.server, configuration, &arguments)
}

/// Sends frames of 1000 bytes, the given number from each source.
fn send(pair: &Pair, sources: &[(&str, usize)]) -> Result<()> {
    let mut frames = Vec::new();
    for (source, count) in sources {
        let source: IpAddr = source.parse()?;
        let (destination, headers) = if source.is_ipv4() {
            ("10.77.0.1", 42)
        } else {
            ("fd77::1", 62)
        };
        let payload = vec![0; 1000 - headers];
        let frame = Frame::new(source, destination.parse()?).udp(1, 2, &payload)?;
        frames.extend(vec![frame; *count]);
    }
    RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&frames)?;
    Ok(())
}

/// Returns limit, id, addresses and drops of each row of `limiter offenders`. The ages vary, so
/// they are only checked for presence.
fn rows(limiter: &Limiter, arguments: &[&str]) -> Result<Value> {
    let shown = limiter.show(&[&["offenders", "--json"], arguments].concat())?;
    let response: Value = serde_json::from_str(&shown)?;
    let mut rows = Vec::new();
    for offender in response["offenders"].as_array().context("a list")? {
        let ago = |field: &str| offender[field].as_u64().context("an age");
        let (first, last) = (ago("first_drop_ago_ns")?, ago("last_drop_ago_ns")?);
        ensure!(last <= first && first < 60_000_000_000, "{offender}");
        rows.push(json!([
            offender["limit"],
            offender["id"],
            offender["addresses"],
            offender["drops"]
        ]));
    }
    Ok(Value::Array(rows))
}

#[test]
fn those_dropped_most_come_first() -> Result<()> {
    let pair = pair()?;
    let limiter = start(&pair, CONFIGURATION)?;
    let nobody = limiter.show(&["offenders"])?;
    assert_eq!(
        nobody,
        "No drops are remembered.\n\
         offenders: 0 of up to 65 536 remembered, 0 forgotten; drops: 0 recorded, 0 skipped\n"
    );
    send(
        &pair,
        &[
            ("10.77.0.2", 5),
            ("10.77.0.3", 10),
            ("10.77.0.4", 3),
            ("fd77:1:1::1", 2),
            ("fd77:1:1::2", 1),
            ("fd77:1:1:9::1", 4),
        ],
    )?;

    let (address, range) = ("PacketsPerIPAddress", "BytesPerIPv6Range");
    assert_eq!(
        rows(&limiter, &[])?,
        json!([
            [address, "10.77.0.3", 1, 7],
            [range, "fd77:1:1:9::1", 1, 4],
            [address, "10.77.0.2", 1, 2],
            [range, "fd77:1:1::2", 1, 1],
        ])
    );
    assert_eq!(
        rows(&limiter, &["--limit", address, "--count", "1"])?,
        json!([[address, "10.77.0.3", 1, 7]])
    );
    assert_eq!(
        rows(&limiter, &["--by", "range"])?,
        json!([
            [address, "10.77.0.0/24", 2, 9],
            [range, "fd77:1:1:9::/64", 1, 4],
            [range, "fd77:1:1::/64", 1, 1],
        ])
    );

    // Everything happened within the last hour, and nothing within the last tenth of a second.
    assert_eq!(rows(&limiter, &["--within", "3600"])?, rows(&limiter, &[])?);
    wait_for(|| Ok(rows(&limiter, &["--within", "0.1"])? == json!([])))?;
    let lately = limiter.show(&["offenders", "--within", "0.1"])?;
    ensure!(
        lately.starts_with("No recent drops are remembered.\n"),
        "{lately}"
    );

    let table = limiter.show(&["offenders"])?;
    let lines: Vec<_> = table.lines().collect();
    let drops = lines[0].find("drops").context("a column")? + "drops".len();
    for (line, count) in lines[1..5].iter().zip(["7", "4", "2", "1"]) {
        assert!(line[..drops].ends_with(count), "{table}");
        assert!(line.ends_with(" ago"), "{table}");
    }
    assert_eq!(
        lines[5..],
        [
            "",
            "offenders: 4 of up to 65 536 remembered, 0 forgotten; drops: 14 recorded, 0 skipped"
        ]
    );

    let status = limiter.status()?;
    let dropped = |limit: &str| status["limits"][limit]["dropped_packets"].as_u64();
    assert_eq!((dropped(address), dropped(range)), (Some(9), Some(5)));

    assert_fails(
        &mut limiter.command(&["offenders", "--limit", "PacketPerIPAddress"]),
        &["unknown limit 'PacketPerIPAddress', did you mean 'PacketsPerIPAddress'?"],
    )?;
    assert_last_drop_reported(&limiter)
}

/// Fails unless `limiter explain` reports the last drop of one source, and none for another.
fn assert_last_drop_reported(limiter: &Limiter) -> Result<()> {
    assert_eq!(limiter.explain("10.77.0.4")?["last_drop"], Value::Null);
    assert!(
        !limiter
            .show(&["explain", "10.77.0.4"])?
            .contains("last drop")
    );

    let last = &limiter.explain("10.77.0.2")?["last_drop"];
    assert_eq!(last["limit"], "PacketsPerIPAddress");
    assert_eq!(last["drops"], 2);
    assert_eq!(last["lower_bound"], false);
    let shown = limiter.show(&["explain", "10.77.0.2"])?;
    let line = shown.lines().last().unwrap_or_default();
    assert!(
        line.starts_with("last drop: ")
            && line.contains(" ago by PacketsPerIPAddress (its drops: 2, the first "),
        "{shown}"
    );
    Ok(())
}

#[test]
fn more_than_the_allowance() -> Result<()> {
    const PACKETS: usize = 50_000;
    let pair = pair()?;
    let limiter = start(&pair, CONFIGURATION)?;
    send(&pair, &[("10.77.0.2", PACKETS)])?;
    let shown = limiter.show(&["offenders", "--json"])?;
    let list: Value = serde_json::from_str(&shown)?;
    let number = |value: &Value| value.as_u64().context("a number");
    let (recorded, skipped) = (number(&list["recorded"])?, number(&list["skipped"])?);
    let status = limiter.status()?;
    let dropped = number(&status["limits"]["PacketsPerIPAddress"]["dropped_packets"])?;
    assert_eq!(recorded + skipped, dropped);
    assert_eq!(list["offenders"][0]["drops"], recorded);
    // The number of skipped drops depends on the machine; the flag must agree with it.
    assert_eq!(list["lower_bound"], skipped > 0);
    let table = limiter.show(&["offenders"])?;
    assert_eq!(table.contains('≥'), skipped > 0, "{table}");
    Ok(())
}

#[test]
fn what_is_not_recorded_cannot_be_told() -> Result<()> {
    let pair = pair()?;
    let off = format!("offenders: {{capacity: 0}}\n{CONFIGURATION}");
    let limiter = start(&pair, &off)?;
    send(&pair, &[("10.77.0.2", 5)])?;
    assert_fails(
        &mut limiter.command(&["offenders"]),
        &[
            "offenders are not recorded: the configuration has `offenders: {capacity: 0}`; give \
           it room, such as 65536, and start the daemon again",
        ],
    )?;
    assert_eq!(limiter.status()?["reasons"]["over_limit"], 2);
    assert_eq!(limiter.explain("10.77.0.2")?["last_drop"], Value::Null);
    Ok(())
}
