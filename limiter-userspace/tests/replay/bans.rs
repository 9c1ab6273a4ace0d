//! Automatic bans on captures, with both engines: the banned sources, start, duration and effect.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use testbed::{
    Frame,
    capture::{PCAP, Packet},
};

use crate::command::{Replayed, replay};

const MS: u64 = 1_000_000;

/// Ten packets a second pass; 50 drops within a second ban for two seconds.
const CONFIG: &str = "\
limits:
  PacketsPerIPAddress: {burst: 1, count: 10, period: 1s,
    ban: {after: 50 drops, within: 1s, for: 2s, at-most: 3s, escalate: 2, range-after: 4}}
";

/// Makes `rate` packets a second from a source, for `for_ms` milliseconds from `from_ms` on.
fn stream(source: &str, from_ms: u64, for_ms: u64, rate: u64) -> Result<Vec<Packet>> {
    let destination = if source.contains(':') {
        "2001:db8:ffff::1"
    } else {
        "10.9.9.9"
    };
    let frame = Frame::new(source.parse()?, destination.parse()?).udp(1, 2, b"x")?;
    let times = (0..for_ms * rate / 1_000).map(|number| from_ms * MS + number * 1_000 * MS / rate);
    Ok(times
        .map(|at| Packet::whole(7_000 * MS + at, frame.clone()))
        .collect())
}

/// Replays streams with both engines, and fails unless their outputs are equal.
fn replayed(config: &str, streams: &[Vec<Packet>], arguments: &[&str]) -> Result<Replayed> {
    let mut packets = streams.concat();
    packets.sort_by_key(|packet| packet.time_ns);
    let capture = PCAP.write(&packets);
    let native = replay(config, &capture, false, arguments)?;
    let kernel = [arguments, &["--engine", "kernel"]].concat();
    let kernel = replay(config, &capture, false, &kernel)?;
    assert!(native.success, "{}", native.stderr);
    assert!(kernel.success, "{}", kernel.stderr);
    assert_eq!(native.stdout, kernel.stdout);
    Ok(native)
}

fn summary(replayed: &Replayed) -> Result<Value> {
    let mut lines = replayed.lines()?;
    let last = lines.pop().context("no summary")?;
    Ok(last["summary"].clone())
}

/// Returns each ban's time in milliseconds, prefix, duration in seconds, and ordinal.
fn bans(summary: &Value) -> Result<Vec<(u64, String, u64, u64)>> {
    let number = |value: &Value| value.as_u64().context("a number");
    let bans = summary["bans"]["first"].as_array().context("no bans")?;
    assert_eq!(number(&summary["bans"]["total"])?, bans.len() as u64);
    let reported = bans.iter().map(|ban| {
        assert_eq!(ban["limit"], "PacketsPerIPAddress");
        Ok((
            number(&ban["t_ns"])? / MS,
            ban["prefix"].as_str().context("a prefix")?.to_owned(),
            number(&ban["for_ns"])? / (1_000 * MS),
            number(&ban["times"])?,
        ))
    });
    reported.collect()
}

/// Of 100 packets a second, ten pass. The daemon polls every 100 ms, and at 0.6 s first finds 50 drops or more: 54. The
/// ban then drops every packet for two seconds. Later bans last three seconds, the maximum, instead of four.
#[test]
fn bans_end_and_grow() -> Result<()> {
    let replayed = replayed(
        CONFIG,
        &[
            stream("10.0.0.1", 0, 10_000, 100)?,
            // None of its packets is dropped.
            stream("10.0.0.2", 0, 10_000, 5)?,
        ],
        &["--json"],
    )?;
    let summary = summary(&replayed)?;
    let one = |at_ms, seconds, times| (at_ms, "10.0.0.1".to_owned(), seconds, times);
    assert_eq!(
        bans(&summary)?,
        [one(600, 2, 1), one(3_200, 3, 2), one(6_800, 3, 3)]
    );
    // Bans of two, three and three seconds.
    assert_eq!(summary["by_reason"]["banned"], 800);
    let hits = |number: usize| &summary["bans"]["first"][number]["hits"];
    assert_eq!([hits(0), hits(1), hits(2)], [200, 300, 300]);
    let other: Vec<_> = replayed
        .lines()?
        .into_iter()
        .filter(|line| line["id"] == "10.0.0.2")
        .collect();
    assert_eq!(other.len(), 50);
    assert!(other.iter().all(|line| line["verdict"] == "pass"));
    Ok(())
}

/// Four addresses of a /64 get it banned, and with it a fifth address that was never seen before.
#[test]
fn ranges() -> Result<()> {
    let mut streams = Vec::new();
    for host in 1..=4 {
        streams.push(stream(&format!("2001:db8::{host}"), 0, 1_000, 30)?);
    }
    streams.push(stream("2001:db8::5", 2_000, 100, 10)?);
    streams.push(stream("2001:db8:0:1::5", 2_000, 100, 10)?);
    let replayed = replayed(CONFIG, &streams, &["--json"])?;
    let found = bans(&summary(&replayed)?)?;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].1, "2001:db8::/64");
    let last: Vec<_> = replayed
        .lines()?
        .into_iter()
        .rev()
        .skip(1)
        .take(2)
        .collect();
    let verdicts: Vec<_> = last.iter().map(|line| line["verdict"].clone()).collect();
    assert!(verdicts.contains(&json!("pass")) && verdicts.contains(&json!("drop")));
    Ok(())
}

/// IPv4 clients behind translators share a /64 and nothing else: no client's drops ban another one. A client with
/// enough drops is banned alone.
#[test]
fn ipv4_clients_in_ipv6_are_no_range() -> Result<()> {
    let config = format!("nat64: '2001:db8:64::/96'\n{CONFIG}");
    let networks = [
        ("64:ff9b::c000:20", 0),
        ("2001:db8:64::c000:20", 1),
        ("2001:0:c000:201::", 2),
        // 6to4: the four addresses belong to one site.
        ("2002:c000:201::", 3),
    ];
    let mut streams = Vec::new();
    for (network, after) in networks {
        for host in 1..=4 {
            streams.push(stream(
                &format!("{network}{host}"),
                after * 3_000,
                1_000,
                30,
            )?);
        }
    }
    streams.push(stream("64:ff9b::c000:301", 12_000, 700, 100)?);
    let found = bans(&summary(&replayed(&config, &streams, &["--json"])?)?)?;
    let found: Vec<&str> = found.iter().map(|ban| ban.1.as_str()).collect();
    assert_eq!(found, ["2002:c000:201::/64", "64:ff9b::c000:301"]);
    Ok(())
}

#[test]
fn what_would_be_banned() -> Result<()> {
    let observing = CONFIG.replace("range-after: 4", "mode: observe");
    let streams = vec![stream("10.0.0.1", 0, 5_000, 100)?];
    let reported = summary(&replayed(&observing, &streams, &["--json"])?)?;
    let one = |at_ms| (at_ms, "10.0.0.1".to_owned(), 2, 1);
    assert_eq!(bans(&reported)?, [one(600), one(3_200)]);
    assert_eq!(reported["bans"]["first"][0]["mode"], "observe");
    assert_eq!(reported["bans"]["first"][0]["hits"], 0);
    assert_eq!(reported["by_reason"]["banned"], 0);
    // The same as without `ban`.
    let plain = "limits: {PacketsPerIPAddress: {burst: 1, count: 10, period: 1s}}\n";
    let without = summary(&replayed(plain, &streams, &["--json"])?)?;
    assert_eq!(reported["by_reason"], without["by_reason"]);
    assert_eq!(without.get("bans"), None);
    Ok(())
}

/// At most a thousand bans at once, then a hundred in each poll, most drops first.
#[test]
fn bans_that_are_put_off() -> Result<()> {
    let often = CONFIG.replace("after: 50", "after: 3");
    let mut packets = Vec::new();
    for number in 0..1_200_u64 {
        let source = format!("10.1.{}.{}", number / 250, number % 250);
        // The last sources have one more drop.
        let count = if number < 200 { 4 } else { 5 };
        packets.extend(stream(&source, 0, 10, count * 100)?);
    }
    // The capture goes on for a second.
    packets.extend(stream("10.0.0.1", 1_000, 1_000, 1)?);
    packets.sort_by_key(|packet| packet.time_ns);
    let replayed = replay(&often, &PCAP.write(&packets), false, &["--json"])?;
    let summary = summary(&replayed)?;
    let bans = bans(&summary)?;
    let at = |at_ms| {
        bans.iter()
            .filter(|(found_ms, ..)| *found_ms == at_ms)
            .count()
    };
    assert_eq!([at(100), at(200), at(300)], [1_000, 100, 100]);
    assert_eq!(bans.len(), 1_200);
    assert!(
        bans[..1_000]
            .iter()
            .all(|(_, source, ..)| source != "10.1.0.0")
    );
    assert_eq!(bans[1_000].1, "10.1.0.0");
    Ok(())
}

#[test]
fn as_a_table() -> Result<()> {
    let reported = replayed(CONFIG, &[stream("10.0.0.1", 0, 3_000, 100)?], &[])?;
    let expected = "\
ban       by                   mode             at  for  times  hits  reason
10.0.0.1  PacketsPerIPAddress  enforce  0.600000 s   2s      1   200  54 drops in 1s
";
    assert!(reported.stdout.ends_with(expected), "{}", reported.stdout);
    let nobody = replayed(CONFIG, &[stream("10.0.0.1", 0, 3_000, 5)?], &[])?;
    assert!(
        nobody.stdout.ends_with("\n\nno limit bans anybody\n"),
        "{}",
        nobody.stdout
    );
    Ok(())
}

/// Two sources send the same; only the one on the list of proven sources is banned.
#[test]
fn only_proven_sources_are_banned_where_the_limit_says_so() -> Result<()> {
    let only = CONFIG.replace("range-after: 4", "range-after: 4, only: proven");
    let config = format!(
        "lists: [{{name: ours, cidr: 10.0.0.2}}]\nstanding: {{proven: ours, proven-by: list}}\n{only}"
    );
    let streams = ["10.0.0.1", "10.0.0.2"].map(|source| stream(source, 0, 1_500, 100));
    let streams = streams.into_iter().collect::<Result<Vec<_>>>()?;
    let reported = summary(&replayed(&config, &streams, &["--json"])?)?;
    let expected = [(600, "10.0.0.2".to_owned(), 2, 1)];
    assert_eq!(bans(&reported)?, expected);
    let not_proven = json!({"PacketsPerIPAddress": 1});
    assert_eq!(reported["bans"]["not_proven"], not_proven, "{reported:#}");
    let shown = replayed(&config, &streams, &[])?.stdout;
    let said = "PacketsPerIPAddress does not ban 1, because they are not proven (`only: proven`)\n";
    assert!(shown.ends_with(said), "{shown}");
    Ok(())
}
