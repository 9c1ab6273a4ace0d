//! Limits that ban the sources they drop, tested between namespaces.

use std::{
    net::IpAddr,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Pair, RawSender, SERVER_INTERFACE};

use crate::{BINARY, banned, bans, pair, pinned::assert_metric, wait_for};

/// A source that exceeds ten packets a second is banned after a hundred drops, first for five seconds, then for ten: a
/// busy machine needs seconds to observe a ban's effect.
const CONFIGURATION: &str = "\
limits:
  PacketsPerIPAddress: {burst: 10, count: 10, period: 1s,
    ban: {after: 100 drops, within: 1s, for: 5s, at-most: 10s, escalate: 2, range-after: 4}}
";

fn start(pair: &Pair, configuration: &str) -> Result<Limiter> {
    let arguments = ["-i", SERVER_INTERFACE, "--metrics", "off"];
    Limiter::start(Path::new(BINARY), &pair.server, configuration, &arguments)
}

/// Sends `count` packets of a source at once.
fn send(pair: &Pair, source: &str, count: usize) -> Result<()> {
    let source: IpAddr = source.parse()?;
    let destination = if source.is_ipv4() {
        "10.77.0.1"
    } else {
        "fd77::1"
    };
    let frame = Frame::new(source, destination.parse()?).udp(1, 2, b"x")?;
    RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&vec![frame; count])?;
    Ok(())
}

/// Waits until there are `count` bans.
fn wait_for_bans(limiter: &Limiter, count: usize) -> Result<Vec<Value>> {
    let mut found = Vec::new();
    wait_for(|| {
        found = bans(limiter)?;
        Ok(found.len() == count)
    })?;
    Ok(found)
}

/// Sends from a source until there are `count` bans. The daemon may take the first packets for earlier ones.
fn send_until_banned(
    pair: &Pair,
    limiter: &Limiter,
    source: &str,
    count: usize,
) -> Result<Vec<Value>> {
    let mut found = Vec::new();
    wait_for(|| {
        send(pair, source, 300)?;
        found = bans(limiter)?;
        Ok(found.len() == count)
    })?;
    Ok(found)
}

/// Returns how many packets were counted under a reason.
fn counted(limiter: &Limiter, reason: &str) -> Result<u64> {
    let status = limiter.status()?;
    Ok(status["reasons"][reason].as_u64().unwrap_or(0))
}

/// Returns the log's events of automatic bans, recognised by their field `prefix`.
fn events(limiter: &Limiter, count: usize) -> Result<Vec<Value>> {
    let mut events = Vec::new();
    wait_for(|| {
        let log = limiter.log()?;
        let lines = log.lines().map(serde_json::from_str::<Value>);
        events = lines.filter_map(Result::ok).collect();
        events.retain(|event| event.get("prefix").is_some());
        Ok(events.len() >= count)
    })?;
    Ok(events)
}

#[test]
fn repeated_drops_ban_a_source_and_the_next_time_for_longer() -> Result<()> {
    let pair = pair()?;
    let limiter = start(&pair, CONFIGURATION)?;
    // 90 drops are not enough: the poll that bans the next source finds these, too, and does not ban.
    send(&pair, "10.77.0.2", 100)?;
    wait_for(|| Ok(counted(&limiter, "over_limit")? >= 80))?;

    for (times, seconds) in [(1, 5), (2, 10)] {
        let begun = Instant::now();
        let found = send_until_banned(&pair, &limiter, "10.77.0.3", 1)?;
        assert_eq!(found[0]["prefix"], "10.77.0.3/32");
        assert_eq!(found[0]["limit"], "PacketsPerIPAddress");
        assert_eq!(found[0]["times"], times);
        let reason = found[0]["reason"].as_str().context("no reason")?;
        ensure!(reason.ends_with(" drops in 1s"), "{reason}");

        // The ban also drops packets that would be within the limit by now.
        wait_for(|| {
            let explanation = limiter.explain("10.77.0.3")?;
            Ok(explanation["limits"][0]["remaining"].as_u64() >= Some(5))
        })?;
        let banned = counted(&limiter, "banned")?;
        let within = counted(&limiter, "within_limits")?;
        send(&pair, "10.77.0.3", 5)?;
        wait_for(|| Ok(counted(&limiter, "banned")? >= banned + 5))?;
        send(&pair, "10.77.0.2", 1)?;
        wait_for(|| Ok(counted(&limiter, "within_limits")? == within + 1))?;

        // The kernel ends the ban, to the nanosecond; the daemon stops showing it.
        wait_for_bans(&limiter, 0)?;
        let lasted = begun.elapsed();
        ensure!(lasted >= Duration::from_secs(seconds), "{lasted:?}");
        let within = counted(&limiter, "within_limits")?;
        send(&pair, "10.77.0.3", 1)?;
        wait_for(|| Ok(counted(&limiter, "within_limits")? == within + 1))?;
    }

    let reported = events(&limiter, 2)?;
    for (event, (for_ns, times)) in reported
        .iter()
        .zip([(5_000_000_000_u64, 1), (10_000_000_000, 2)])
    {
        assert_eq!(event["limit"], "PacketsPerIPAddress");
        assert_eq!(event["prefix"], "10.77.0.3");
        assert_eq!(event["for_ns"], for_ns);
        assert_eq!(event["times"], times);
    }
    let message = reported[1]["message"].as_str().context("no message")?;
    let expected = "PacketsPerIPAddress bans 10.77.0.3 for 10s: ";
    ensure!(
        message.starts_with(expected) && message.ends_with(" drops in 1s; time 2"),
        "{message}"
    );
    Ok(())
}

#[test]
fn a_range_takes_the_place_of_its_addresses() -> Result<()> {
    let pair = pair()?;
    let long = CONFIGURATION.replace("for: 5s, at-most: 10s", "for: 10m");
    let limiter = start(&pair, &long)?;
    for host in 1..=3 {
        send_until_banned(&pair, &limiter, &format!("fd77:1:1::{host}"), host)?;
    }
    send(&pair, "fd77:1:1::4", 200)?;
    let found = wait_for_bans(&limiter, 1)?;
    assert_eq!(found[0]["prefix"], "fd77:1:1::/64");
    let reason = found[0]["reason"].as_str().context("no reason")?;
    ensure!(reason.ends_with(" drops of 4 addresses in 1s"), "{reason}");
    Ok(())
}

#[test]
fn the_guard_holds() -> Result<()> {
    let pair = pair()?;
    let limiter = start(&pair, CONFIGURATION)?;
    // A sender that forges this host's own address cannot get it banned.
    send(&pair, "10.77.0.1", 300)?;
    let found = send_until_banned(&pair, &limiter, "10.77.0.9", 1)?;
    assert_eq!(found[0]["prefix"], "10.77.0.9/32");
    let mut refused = Vec::new();
    wait_for(|| {
        send(&pair, "10.77.0.1", 300)?;
        refused = events(&limiter, 1)?;
        refused.retain(|event| event["prefix"] == "10.77.0.1");
        Ok(!refused.is_empty())
    })?;
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0]["why"], "it is an address of this host");
    Ok(())
}

#[test]
fn sources_of_a_network_that_is_not_banned_are_banned_alone() -> Result<()> {
    let pair = Pair::new(&["fd77::2/64".parse()?], &["fd77::1/64".parse()?])?;
    let long = CONFIGURATION.replace("for: 5s, at-most: 10s", "for: 10m");
    let limiter = start(&pair, &long)?;
    let clients = ["fd77::2", "fd77::3", "fd77::4", "fd77::5"];
    let mut found = Vec::new();
    wait_for(|| {
        for client in clients {
            send(&pair, client, 100)?;
        }
        found = bans(&limiter)?;
        Ok(found.len() >= clients.len())
    })?;
    let prefixes: Vec<_> = found.iter().map(|ban| ban["prefix"].clone()).collect();
    assert_eq!(
        prefixes,
        clients.map(|client| json!(format!("{client}/128")))
    );
    Ok(())
}

#[test]
fn what_only_observes_is_told_and_bans_nobody() -> Result<()> {
    let pair = pair()?;
    let observing = CONFIGURATION.replace("range-after: 4", "mode: observe");
    let limiter = start(&pair, &observing)?;
    let mut reported = Vec::new();
    wait_for(|| {
        send(&pair, "10.77.0.3", 300)?;
        reported = events(&limiter, 0)?;
        Ok(!reported.is_empty())
    })?;
    let message = reported[0]["message"].as_str().context("no message")?;
    let expected = "PacketsPerIPAddress would ban 10.77.0.3 for 5s: ";
    ensure!(message.starts_with(expected), "{message}");
    ensure!(bans(&limiter)?.is_empty());
    Ok(())
}

#[test]
fn a_reload_bans_from_then_on() -> Result<()> {
    let pair = pair()?;
    let plain = "limits: {PacketsPerIPAddress: {burst: 10, count: 10, period: 1s}}\n";
    let limiter = start(&pair, plain)?;
    send(&pair, "10.77.0.3", 300)?;
    limiter.configure(CONFIGURATION)?;
    limiter.show(&["reload"])?;
    // Earlier drops do not count. The daemon checks about once a second whether any limit bans.
    wait_for(|| {
        send(&pair, "10.77.0.4", 300)?;
        Ok(!bans(&limiter)?.is_empty())
    })?;
    let found = wait_for_bans(&limiter, 1)?;
    assert_eq!(found[0]["prefix"], "10.77.0.4/32");
    limiter.configure(plain)?;
    limiter.show(&["reload"])?;
    send(&pair, "10.77.0.5", 300)?;
    // Drops from a time when no limit banned do not count either.
    limiter.configure(CONFIGURATION)?;
    limiter.show(&["reload"])?;
    let mut found = Vec::new();
    wait_for(|| {
        send(&pair, "10.77.0.6", 300)?;
        found = banned(&limiter)?;
        Ok(found.iter().any(|prefix| prefix == "10.77.0.6/32"))
    })?;
    ensure!(
        found.iter().all(|prefix| prefix != "10.77.0.5/32"),
        "{found:?}"
    );
    Ok(())
}

#[test]
fn a_ban_tells_its_limit_also_when_that_is_gone() -> Result<()> {
    let pair = pair()?;
    let ban = "ban: {after: 100, within: 1s, for: 10m}";
    let own = format!(
        "limits: {{Own: {{id: ipAddress, cost: packets, burst: 9, count: 9, period: 1s, {ban}}}}}\n"
    );
    let limiter = start(&pair, &own)?;
    send_until_banned(&pair, &limiter, "10.77.0.3", 1)?;
    limiter.configure(CONFIGURATION)?;
    limiter.show(&["reload"])?;
    assert_eq!(bans(&limiter)?[0]["limit"], "Own");
    let explained = limiter.show(&["explain", "10.77.0.3"])?;
    let expected = "BANNED by Own as 10.77.0.3, for ";
    ensure!(explained.contains(expected), "{explained}");
    Ok(())
}

#[test]
fn outcomes_are_counted() -> Result<()> {
    let pair = pair()?;
    let arguments = ["-i", SERVER_INTERFACE];
    let limiter = Limiter::start(Path::new(BINARY), &pair.server, CONFIGURATION, &arguments)?;
    send_until_banned(&pair, &limiter, "10.77.0.3", 1)?;
    for (outcome, number) in [
        ("banned", 1),
        ("would_ban", 0),
        ("refused", 0),
        ("delayed", 0),
        ("held_back", 0),
    ] {
        let labels = format!("limit=\"PacketsPerIPAddress\",outcome=\"{outcome}\"");
        let line = format!("limiter_automatic_bans_total{{{labels}}} {number}");
        assert_metric(&pair.server, &line)?;
    }
    Ok(())
}
