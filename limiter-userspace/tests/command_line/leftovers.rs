//! Pinned state that a killed daemon or an abandoned policy leaves behind does not mislead the next
//! daemon or policy.

use std::{fmt::Write as _, fs};

use anyhow::{Context as _, Result, ensure};
use testbed::SERVER_INTERFACE;

use crate::{pinned::Pinned, wait_for};

const CLIENT: &str = "10.77.0.2";
const LIMIT: &str = "PacketsPerIPAddress";

/// Hardly any token comes back while the test runs.
const TEN: &str = "limits: {PacketsPerIPAddress: {burst: 10, count: 1, period: 1h}}\n";

/// Reloads with so many different rates that unit numbers are given again. A source that owed one
/// packet of ten used to be dropped for days.
#[test]
fn reloads_with_all_the_rates_that_fit() -> Result<()> {
    let many = |unit: &str| {
        let mut text = String::from(TEN);
        text.push_str("overrides:\n");
        for number in 1..32_766_u32 {
            let id = std::net::Ipv4Addr::from(0x0b00_0000 + number);
            let count = number + 10;
            let _ = writeln!(text, "  {LIMIT}:{id}: {{rate: {count}/{unit}}}");
        }
        text
    };
    let pinned = Pinned::start(TEN)?;
    let of_client = format!("  {LIMIT}:{CLIENT}: {{burst: 10, count: 1, period: 3599s}}\n");
    pinned.reload(&(many("day") + &of_client))?;
    pinned.send(CLIENT, 1)?;
    pinned.reload("limits: {PacketsPerIPv4Range: {burst: 100, count: 1, period: 2h}}\n")?;
    pinned.reload(&many("minute"))?;
    let before = pinned.counted("within_limits")?;
    pinned.send(CLIENT, 9)?;
    let status = pinned.limiter.status()?;
    ensure!(pinned.counted("within_limits")? == before + 9, "{status:#}");
    Ok(())
}

/// Puts a policy in force without confirming it, spends from it, and waits until it is reverted: by
/// the timeout, or because the daemon is killed and another one starts.
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

/// Tokens spent under a reverted policy stay owed, and its unit numbers are not mistaken for another
/// policy's.
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

/// A limit that gets the interned id of a reverted policy's limit starts from scratch.
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

/// The number of an interface that is limited no more and has no program attached is cleared by a
/// reload and by another daemon.
#[test]
fn the_number_of_an_interface_that_was_let_go() -> Result<()> {
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
            fs::remove_dir_all(interface?.path()).context("cannot remove an interface's pins")?;
        }
        // First another interface, which does not exist yet, then both.
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
