//! Log events about sources and names: drops that begin and end.

use std::{net::IpAddr, path::Path};

use anyhow::{Context as _, Result, ensure};
use limiter_policy::policy::Question;
use serde_json::Value;
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Pair, RawSender, SERVER_INTERFACE};

use crate::{BINARY, pair, wait_for};

const CONFIGURATION: &str =
    "limits: {PacketsPerIPAddress: {burst: 3, count: 1, period: 1h}}\noffenders: {capacity: ";

fn start(pair: &Pair, capacity: u32) -> Result<Limiter> {
    start_with(pair, &format!("{CONFIGURATION}{capacity}}}\n"))
}

/// Starts a daemon that ends an incident after one quiet second.
fn start_with(pair: &Pair, configuration: &str) -> Result<Limiter> {
    let arguments = ["-i", SERVER_INTERFACE, "--metrics", "off"];
    let arguments = [&arguments[..], &["--incident-quiet", "1"]].concat();
    Limiter::start(Path::new(BINARY), &pair.server, configuration, &arguments)
}

fn send(pair: &Pair, sources: impl Iterator<Item = IpAddr>, count: usize) -> Result<()> {
    let mut frames = Vec::new();
    for source in sources {
        let frame = Frame::new(source, "10.77.0.1".parse()?).udp(1, 2, b"x")?;
        frames.extend(vec![frame; count]);
    }
    RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&frames)?;
    Ok(())
}

/// Returns the log's events of drops, once there are `count`.
fn incidents(limiter: &Limiter, count: usize) -> Result<Vec<Value>> {
    let reported = || -> Result<Vec<Value>> {
        let log = limiter.log()?;
        let lines = log.lines().map(serde_json::from_str::<Value>);
        let mut events = lines.collect::<Result<Vec<_>, _>>()?;
        events.retain(|event| event.get("drops").is_some());
        Ok(events)
    };
    wait_for(|| Ok(reported()?.len() >= count))
        .with_context(|| limiter.log().unwrap_or_default())?;
    reported()
}

/// Lets another source be dropped until the daemon logs both its begin and its end; returns the number of events so
/// far. Later drops are not from before the daemon's first poll.
fn begin(pair: &Pair, limiter: &Limiter) -> Result<usize> {
    let other: IpAddr = "10.77.0.99".parse()?;
    wait_for(|| {
        send(pair, [other].into_iter(), 10)?;
        let log = limiter.log()?;
        Ok(log.contains("began to drop"))
    })?;
    let mut number = 0;
    wait_for(|| {
        let events = incidents(limiter, 1)?;
        number = events.len();
        Ok(number % 2 == 0)
    })?;
    Ok(number)
}

#[test]
fn a_source_is_told_twice() -> Result<()> {
    let pair = pair()?;
    let limiter = start(&pair, 65_536)?;
    let beginning = begin(&pair, &limiter)?;
    send(&pair, ["10.77.0.2".parse()?].into_iter(), 500)?;
    let events = incidents(&limiter, beginning + 2)?.split_off(beginning);
    ensure!(events.len() == 2, "{events:?}");
    let (begun, ended) = (&events[0], &events[1]);
    for event in [begun, ended] {
        assert_eq!(event["limit"], "PacketsPerIPAddress");
        assert_eq!(event["address"], "10.77.0.2");
        assert_eq!(event.get("range"), None);
    }
    assert_eq!(begun["level"], "WARN");
    assert_eq!(
        begun["message"],
        "PacketsPerIPAddress began to drop 10.77.0.2"
    );
    assert_eq!(ended["level"], "INFO");
    assert_eq!(ended["drops"], 497);
    assert_eq!(ended["is_lower_bound"], false);
    let message = ended["message"].as_str().context("no message")?;
    let expected = "PacketsPerIPAddress no longer drops 10.77.0.2: 497 packets in ";
    ensure!(message.starts_with(expected), "{message}");
    let duration = ended["duration_ns"].as_u64().context("no duration")?;
    ensure!(duration < 20_000_000_000, "{duration}");
    Ok(())
}

#[test]
fn a_range_is_told_as_one() -> Result<()> {
    let pair = pair()?;
    let limiter = start(&pair, 65_536)?;
    let hosts = |last| (1..=last).map(|host| IpAddr::from([203, 0, 113, host]));
    send(&pair, hosts(100), 103)?;
    let mut events = Vec::new();
    wait_for(|| {
        events = incidents(&limiter, 1)?;
        let of_range = |event: &&Value| event["range"] == "203.0.113.0/24";
        Ok(events.iter().filter(of_range).count() >= 2)
    })?;
    // The poll may have come between the first packets.
    let (alone, of_range): (Vec<_>, Vec<_>) = events
        .iter()
        .partition(|event| event.get("range").is_none());
    ensure!(alone.len() < 20, "{events:?}");
    let message = of_range[0]["message"].as_str().context("no message")?;
    let beginning = "PacketsPerIPAddress began to drop 203.0.113.0/24: ";
    ensure!(message.starts_with(beginning), "{events:?}");
    Ok(())
}

/// Forged sources, each refused once, share only the name in their queries.
#[test]
fn a_name_is_told_where_no_source_is() -> Result<()> {
    let pair = pair()?;
    let limiter = start_with(
        &pair,
        "zones: [example.com]\n\
         limits: {Zones: {id: zone, cost: packets, burst: 3, count: 1, period: 1h}}\n",
    )?;
    let question = Question {
        name: "www.example.com".parse()?,
        of_type: 1,
    };
    let query = question.messages().next().context("no message")?;
    let sender = RawSender::new(&pair.client, CLIENT_INTERFACE)?;
    // Other sources in each round.
    let mut round = 0;
    let mut forge = || -> Result<()> {
        round += 1;
        let frame = |number: u8| {
            let source = IpAddr::from([198, round, number, 7]);
            Frame::new(source, "10.77.0.1".parse()?).udp(40_000, 53, &query)
        };
        let frames: Vec<_> = (0..100).map(frame).collect::<Result<_>>()?;
        sender.send_frames(&frames)?;
        Ok(())
    };
    // Some of the first drops may precede the daemon's first poll.
    let mut beginning = 0;
    wait_for(|| {
        forge()?;
        beginning = incidents(&limiter, 0)?.len();
        Ok(beginning > 0)
    })?;
    beginning += beginning % 2;
    incidents(&limiter, beginning)?;
    forge()?;
    let events = incidents(&limiter, beginning + 2)?;
    ensure!(events.len() == beginning + 2, "{events:?}");
    for event in &events {
        assert_eq!(event["name"], "example.com");
        assert_eq!((event.get("address"), event.get("range")), (None, None));
    }
    let message = "Zones began to drop packets for example.com";
    assert_eq!(events[beginning]["message"], message);
    assert_eq!(events[beginning + 1]["drops"], 100);
    Ok(())
}

#[test]
fn the_limit_alone_where_nobody_is_recorded() -> Result<()> {
    let pair = pair()?;
    let limiter = start(&pair, 0)?;
    let beginning = begin(&pair, &limiter)?;
    send(&pair, ["10.77.0.2".parse()?].into_iter(), 500)?;
    let events = incidents(&limiter, beginning + 2)?.split_off(beginning);
    assert_eq!(events[0]["message"], "PacketsPerIPAddress began to drop");
    assert_eq!(events[1]["drops"], 497);
    for event in events {
        assert_eq!((event.get("address"), event.get("range")), (None, None));
    }
    Ok(())
}
