//! A limit of several rates becomes as many limits, which are judged together and have their own
//! names everywhere.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::{
    assert_fails,
    pinned::{Pinned, assert_metric},
};

const CLIENT: &str = "10.77.0.2";
const FIRST: &str = "PacketsPerIPAddress";
const SECOND: &str = "PacketsPerIPAddress#2";

const CONFIGURATION: &str = "\
limits:
  PacketsPerIPAddress: {rate: 5/hour; 8/day, metrics: {tag: web}}
";

/// Fails unless the client has this much left of each rate.
fn assert_remaining(pinned: &Pinned, expected: [u64; 2]) -> Result<()> {
    let remaining = [
        pinned.remaining(FIRST, CLIENT)?,
        pinned.remaining(SECOND, CLIENT)?,
    ];
    ensure!(
        remaining == expected,
        "{remaining:?} instead of {expected:?}"
    );
    Ok(())
}

/// Returns a limit's drops from `limiter offenders`.
fn drops(pinned: &Pinned, limit: &str) -> Result<Value> {
    let shown = pinned
        .limiter
        .show(&["offenders", "--json", "--limit", limit])?;
    let shown: Value = serde_json::from_str(&shown)?;
    let offenders = shown["offenders"].as_array().context("a list")?;
    Ok(offenders.iter().map(|one| one["drops"].clone()).collect())
}

#[test]
fn are_judged_together_and_called_by_their_names() -> Result<()> {
    let mut pinned = Pinned::start(CONFIGURATION)?;
    pinned.send(CLIENT, 6)?;
    // A packet denied by the first rate is not charged to the second.
    assert_remaining(&pinned, [0, 3])?;
    pinned.limiter.show(&["reset", CLIENT, "--limit", FIRST])?;
    pinned.send(CLIENT, 5)?;
    assert_remaining(&pinned, [2, 0])?;
    ensure!(drops(&pinned, FIRST)? == json!([1]));
    ensure!(drops(&pinned, SECOND)? == json!([2]));

    let refund = ["refund", CLIENT, "--limit", SECOND, "--cost", "2"];
    pinned.limiter.show(&refund)?;
    assert_remaining(&pinned, [2, 2])?;
    assert_fails(
        &mut pinned
            .limiter
            .command(&["reset", "--all", "--limit", "PacketsPerIPAddress#3"]),
        &["unknown limit 'PacketsPerIPAddress#3', did you mean 'PacketsPerIPAddress#2'?"],
    )?;

    let status = pinned.limiter.status()?;
    ensure!(
        status["limits"][FIRST]["dropped_packets"] == 1,
        "{status:#}"
    );
    ensure!(
        status["limits"][SECOND]["dropped_packets"] == 2,
        "{status:#}"
    );
    let flat = pinned.limiter.show(&["stats", "--flat"])?;
    for line in [
        "plugin.rate_limiter.sni.web.rejected 1",
        "plugin.rate_limiter.sni.web-2.rejected 2",
    ] {
        ensure!(
            flat.lines().any(|got| got == line),
            "{line} is not in\n{flat}"
        );
    }
    let total = format!(r#"limiter_limit_packets_total{{limit="{SECOND}",decision="drop"}} 2"#);
    assert_metric(&pinned.pair.server, &total)?;

    // The next daemon knows them from the pins.
    pinned.limiter.kill()?;
    pinned.restart_with(&[])?;
    assert_remaining(&pinned, [2, 2])
}
