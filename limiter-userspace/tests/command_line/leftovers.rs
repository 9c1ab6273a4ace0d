//! What a daemon that was killed, or a policy that was given up, has left in what is pinned: the
//! next one is not misled by it.

use std::{fmt::Write as _, fs};

use anyhow::{Context as _, Result, ensure};
use aya::maps::{Array, Map, MapData};
use limiter_common::table::{LOCKED, WAYS};
use testbed::SERVER_INTERFACE;

use crate::{pinned::Pinned, wait_for};

const CLIENT: &str = "10.77.0.2";
const LIMIT: &str = "PacketsPerIPAddress";

/// Hardly anything comes back while the test runs.
const TEN: &str = "limits: {PacketsPerIPAddress: {burst: 10, count: 1, period: 1h}}\n";

/// The table of buckets that is pinned.
fn table(pinned: &Pinned) -> Result<Array<MapData, [u64; 2 * WAYS]>> {
    let files = pinned.pins.files()?;
    let path = files.iter().find(|file| file.ends_with("host/TABLE"));
    let map = MapData::from_pin(path.context("a table is pinned")?);
    Ok(Map::Array(map?).try_into()?)
}

/// Locks each bucket of the table, as a daemon used to before it changed one; returns how many.
fn lock(pinned: &Pinned) -> Result<usize> {
    let mut table = table(pinned)?;
    let mut locked = 0;
    for index in 0..table.len() {
        let mut line = table.get(&index, 0)?;
        for way in 0..WAYS {
            // Behind the number of the unit; of nobody's way it is 0.
            if line[2 * way] >> 16 != 0 {
                line[2 * way + 1] = LOCKED;
                locked += 1;
                table.set(index, line, 0)?;
            }
        }
    }
    Ok(locked)
}

fn configuration(limits: &str) -> String {
    format!("buckets: {{capacity: 4096}}\nlimits: {{{limits}}}\n")
}

#[test]
fn locks_of_a_killed_daemon_are_freed() -> Result<()> {
    let mut pinned = Pinned::start(&configuration(
        "PacketsPerIPAddress: {burst: 10, count: 1, period: 1h}",
    ))?;
    pinned.send(CLIENT, 4)?;
    pinned.limiter.kill()?;
    ensure!(lock(&pinned)? == 1);
    pinned.send(CLIENT, 1)?;
    ensure!(pinned.counted("contended")? == 1, "it is locked");

    pinned.limiter.restart()?;
    let log = pinned.limiter.log()?;
    let told = "buckets were locked that a daemon was changing when it was killed";
    ensure!(log.contains(told), "{log}");
    pinned.send(CLIENT, 10)?;
    ensure!(pinned.counted("contended")? == 1);
    ensure!(pinned.counted("within_limits")? == 14);

    // And while a daemon runs.
    for whose in [CLIENT, "--all"] {
        ensure!(lock(&pinned)? >= 1);
        pinned.limiter.show(&["reset", whose])?;
        let before = pinned.counted("within_limits")?;
        pinned.send(CLIENT, 10)?;
        ensure!(pinned.counted("within_limits")? == before + 10, "{whose}");
    }
    Ok(())
}

/// Reloads with so many different rates that numbers of units are given again. A source that owes
/// one packet of ten was dropped for days.
#[test]
fn reloads_with_all_the_rates_that_fit() -> Result<()> {
    let many = |unit: &str| {
        let mut text = String::from(TEN);
        text.push_str("overrides:\n");
        for number in 1..32_766_u32 {
            let id = std::net::Ipv4Addr::from(0x0b00_0000 + number);
            let period = number + 10;
            let _ = writeln!(
                text,
                "  {LIMIT}:{id}: {{burst: 10, count: 1, period: {period}{unit}}}"
            );
        }
        text
    };
    let pinned = Pinned::start(TEN)?;
    let of_client = format!("  {LIMIT}:{CLIENT}: {{burst: 10, count: 1, period: 3599s}}\n");
    pinned.reload(&(many("s") + &of_client))?;
    pinned.send(CLIENT, 1)?;
    pinned.reload("limits: {PacketsPerIPv4Range: {burst: 100, count: 1, period: 2h}}\n")?;
    pinned.reload(&many("us"))?;
    let before = pinned.counted("within_limits")?;
    pinned.send(CLIENT, 9)?;
    let status = pinned.limiter.status()?;
    ensure!(pinned.counted("within_limits")? == before + 9, "{status:#}");
    Ok(())
}

/// Puts a policy in force that nobody confirms, spends from it, and waits until it is gone: by
/// time, or because the daemon is killed and another comes.
fn give_up(pinned: &mut Pinned, policy: &str, packets: usize, is_killed: bool) -> Result<()> {
    let before = pinned.limiter.status()?["policy"]["generation"].clone();
    pinned.reload(policy)?;
    pinned.send(CLIENT, packets)?;
    if is_killed {
        pinned.limiter.kill()?;
        pinned.limiter.configure(TEN)?;
        pinned.restart_with(&["--confirm", "6s"])?;
        pinned.limiter.show(&["confirm"])?;
        return Ok(());
    }
    wait_for(|| Ok(pinned.limiter.status()?["policy"]["generation"] == before))
}

/// What was spent from a policy that was given up is owed in tokens, to whoever looks; and no
/// number that it used is taken for another's.
#[test]
fn units_of_a_policy_that_was_given_up() -> Result<()> {
    const SLOWER: &str = "limits: {PacketsPerIPAddress: {burst: 10, count: 1, period: 5h}}\n";
    const FASTER: &str = "limits: {PacketsPerIPAddress: {burst: 10, count: 1, period: 7h}}\n";
    for is_killed in [false, true] {
        let mut pinned = Pinned::start_with(TEN, &["-i", SERVER_INTERFACE, "--confirm", "6s"])?;
        pinned.limiter.show(&["confirm"])?;
        give_up(&mut pinned, SLOWER, 4, is_killed)?;
        let remaining = pinned.remaining(LIMIT, CLIENT)?;
        ensure!(remaining == 6, "{remaining} remain, killed: {is_killed}");
        pinned.reload(FASTER)?;
        let remaining = pinned.remaining(LIMIT, CLIENT)?;
        ensure!(remaining == 6, "{remaining} remain, killed: {is_killed}");
        let before = pinned.counted("within_limits")?;
        pinned.send(CLIENT, 10)?;
        ensure!(pinned.counted("within_limits")? == before + 6);
    }
    Ok(())
}

/// Nor is a limit that gets the id of one that was given up.
#[test]
fn limits_of_a_policy_that_was_given_up() -> Result<()> {
    let custom = |name: &str| {
        format!(
            "limits: {{{name}: {{id: ipAddress, cost: packets, burst: 10, count: 1, period: 1h}}}}\n"
        )
    };
    for is_killed in [false, true] {
        let mut pinned = Pinned::start_with(TEN, &["-i", SERVER_INTERFACE, "--confirm", "6s"])?;
        pinned.limiter.show(&["confirm"])?;
        give_up(&mut pinned, &custom("GivenUp"), 12, is_killed)?;
        pinned.reload(&custom("Other"))?;
        ensure!(
            pinned.remaining("Other", CLIENT)? == 10,
            "killed: {is_killed}"
        );
        let status = pinned.limiter.status()?;
        let counted = &status["limits"]["Other"];
        ensure!(counted["dropped_packets"] == 0, "{counted:#}");
        let explanation = pinned.limiter.explain(CLIENT)?;
        ensure!(explanation["last_drop"].is_null(), "{explanation:#}");
    }
    Ok(())
}

/// The slot of an interface that is not to be limited any more, and that nothing is attached to: by a
/// reload, and by another daemon.
#[test]
fn the_slot_of_an_interface_that_was_let_go() -> Result<()> {
    for (scope, reloads) in [
        ("host", true),
        ("host", false),
        ("interface", true),
        ("interface", false),
    ] {
        let configuration = |interfaces: &str| {
            format!(
                "interfaces: [{interfaces}]\nbuckets: {{scope: {scope}}}\n\
                 limits: {{Everything: {{id: total, cost: packets, burst: 10, count: 1, period: 1h}}}}\n"
            )
        };
        let mut pinned = Pinned::start_with(&configuration(SERVER_INTERFACE), &[])?;
        pinned.send(CLIENT, 10)?;
        pinned.limiter.kill()?;
        let interfaces = pinned.pins.path().join("interfaces");
        for interface in fs::read_dir(&interfaces)? {
            fs::remove_dir_all(interface?.path()).context("an interface's pins")?;
        }
        // Another one, which is not there yet; and then both.
        pinned.limiter.configure(&configuration("later0"))?;
        pinned.limiter.restart()?;
        let both = configuration(&format!("later0, {SERVER_INTERFACE}"));
        if reloads {
            pinned.reload(&both)?;
        } else {
            pinned.limiter.kill()?;
            pinned.limiter.configure(&both)?;
            pinned.limiter.restart()?;
        }
        pinned.send(CLIENT, 10)?;
        let status = pinned.limiter.status()?;
        ensure!(
            pinned.counted("within_limits")? == 10,
            "{scope}: {status:#}"
        );
        ensure!(pinned.counted("over_limit")? == 0, "{scope}: {status:#}");
    }
    Ok(())
}
