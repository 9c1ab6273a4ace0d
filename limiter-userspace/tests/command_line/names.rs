//! Limits come and go for years: when no interned id is free, ids of limits long gone are reused.

use std::fmt::Write as _;

use anyhow::{Result, ensure};

use crate::pinned::Pinned;

const CLIENT: &str = "10.77.0.2";

/// Four policies of this many limits use up all 224 interned ids for custom names.
const LIMITS: usize = 56;

fn policy(generation: usize) -> Result<String> {
    let mut text = "limits:\n".to_owned();
    for number in 0..LIMITS {
        let mut rate = "burst: 5, count: 1, period: 1h".to_owned();
        if (generation, number) == (0, 0) {
            rate.push_str(", reserve: {unknown: 1}");
        }
        writeln!(
            text,
            "  G{generation}L{number:02}: {{id: ipAddress, cost: packets, {rate}}}"
        )?;
    }
    Ok(text)
}

#[test]
fn an_id_that_another_limit_gets_takes_nothing_along() -> Result<()> {
    let pinned = Pinned::start(&policy(0)?)?;
    pinned.send(CLIENT, 7)?;
    ensure!(pinned.remaining("G0L00", CLIENT)? == 1);
    for generation in 1..4 {
        pinned.reload(&policy(generation)?)?;
        ensure!(pinned.remaining(&format!("G{generation}L00"), CLIENT)? == 5);
    }
    // No id is free, so this limit gets that of the first.
    pinned.reload(
        "limits: {Late: {id: ipAddress, cost: packets, burst: 5, count: 1, period: 1h,
           reserve: {unknown: 1}}}",
    )?;
    ensure!(pinned.remaining("Late", CLIENT)? == 5);
    let status = pinned.limiter.status()?;
    ensure!(
        status["limits"]["Late"]["dropped_packets"] == 0,
        "{status:#}"
    );
    let unknown = &status["standing"]["limits"]["Late"][4];
    ensure!(unknown["passed_packets"] == 0, "{status:#}");
    ensure!(unknown["dropped_packets"] == 0, "{status:#}");
    let offenders = pinned
        .limiter
        .show(&["offenders", "--limit", "Late", "--json"])?;
    let offenders: serde_json::Value = serde_json::from_str(&offenders)?;
    ensure!(
        offenders["offenders"].as_array().is_some_and(Vec::is_empty),
        "{offenders:#}"
    );
    Ok(())
}
