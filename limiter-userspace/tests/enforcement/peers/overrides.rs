//! A DNS server's zones, of which some have another rate, for everybody or for one client; and a reload that
//! changes one.

use anyhow::{Result, ensure};
use testbed::Pair;

use super::{
    program,
    server::{ADDRESS, Server},
    start,
};
use crate::pair;

/// No token comes back while the test runs.
const CONFIGURATION: &str = "\
zones: [a.test, b.test, c.test]
limits:
  Zones: {id: [ipAddress, zone], cost: packets, burst: 1, count: 1, period: 10h}
overrides:
  Zones:b.test: {burst: 3, count: 1, period: 10h}
  Zones:10.77.0.3: {burst: 2, count: 1, period: 10h}
  Zones:10.77.0.3:b.test: {burst: 5, count: 1, period: 10h}
  Zones:fd77:1:1::/64:a.test: {burst: 4, count: 1, period: 10h}
";

/// Most queries that a test asks at once.
const QUERIES: usize = 7;

/// Asks a zone's server so often, from an address; returns how often it answers.
fn answers(pair: &Pair, from: &str, zone: &str) -> Result<usize> {
    let server = if from.contains(':') {
        "fd77::1"
    } else {
        "10.77.0.1"
    };
    let mut dig = program::command(&pair.client, "dig")?;
    dig.args(["+short", "+tries=1", "+time=1", "-b", from]);
    for number in 0..QUERIES {
        let name = format!("n{number}.{zone}");
        dig.args([&format!("@{server}"), &name, "A"]);
    }
    // It fails if one of them is not answered.
    let output = dig.output()?;
    let printed = String::from_utf8(output.stdout)?;
    Ok(printed.lines().filter(|line| *line == ADDRESS).count())
}

#[test]
fn zones_have_rates_of_their_own_and_clients_for_them() -> Result<()> {
    let pair = pair()?;
    let zones = ["a.test", "b.test", "c.test"].map(ToOwned::to_owned);
    let _nsd = Server::nsd_with_zones(&pair, &zones)?;
    let limiter = start(&pair, CONFIGURATION, "native")?;
    for (from, zone, expected) in [
        ("10.77.0.2", "a.test", 1),
        ("10.77.0.2", "b.test", 3),
        ("10.77.0.3", "a.test", 2),
        ("10.77.0.3", "b.test", 5),
        ("10.77.0.3", "c.test", 2),
        ("fd77:1:1::1", "a.test", 4),
        ("fd77:1:1::1", "b.test", 3),
        ("fd77:1:1::1", "c.test", 1),
    ] {
        let found = answers(&pair, from, zone)?;
        ensure!(found == expected, "{from} {zone}: {found}");
    }
    // Buckets stay; what they owe counts by the new rate.
    let changed = CONFIGURATION.replace("b.test: {burst: 5", "b.test: {burst: 7");
    limiter.configure(&changed)?;
    limiter.show(&["reload"])?;
    for (from, zone, expected) in [
        ("10.77.0.3", "b.test", 2),
        ("10.77.0.3", "a.test", 0),
        ("10.77.0.2", "b.test", 0),
    ] {
        let found = answers(&pair, from, zone)?;
        ensure!(
            found == expected,
            "after the reload: {from} {zone}: {found}"
        );
    }
    Ok(())
}
