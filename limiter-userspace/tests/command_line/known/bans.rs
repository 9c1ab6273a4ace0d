//! Limits that ban only proven sources.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::is_vouched;
use crate::{
    pinned::{Pinned, assert_metric},
    succeed, wait_for,
};

const CONFIGURATION: &str = "\
standing: {proven-by: handshake}
limits:
  PacketsPerIPAddress: {burst: 10, count: 10, period: 1s,
    ban: {after: 100 drops, within: 1s, for: 10m, only: proven}}
";

const STRANGER: &str = "10.77.0.8";
const PROVEN: &str = "10.77.0.9";

#[test]
fn strangers_are_not_banned_and_counted() -> Result<()> {
    let pinned = Pinned::start(CONFIGURATION)?;
    succeed(pinned.with_pins("know").arg(PROVEN))?;
    ensure!(is_vouched(&pinned.limiter, PROVEN)?);
    for source in [STRANGER, PROVEN] {
        pinned.send(source, 300)?;
    }
    let mut found = Vec::new();
    wait_for(|| {
        let told = pinned.limiter.show(&["bans", "--json"])?;
        let told: Value = serde_json::from_str(&told)?;
        found.clone_from(told["bans"].as_array().context("no bans")?);
        Ok(!found.is_empty())
    })?;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["prefix"], format!("{PROVEN}/32"));
    let told = "PacketsPerIPAddress does not ban 1, because they are not proven (`only: proven`)";
    wait_for(|| Ok(pinned.limiter.log()?.contains(told)))?;
    for (outcome, number) in [("banned", 1), ("not_proven", 1), ("refused", 0)] {
        let labels = format!("limit=\"PacketsPerIPAddress\",outcome=\"{outcome}\"");
        let line = format!("limiter_automatic_bans_total{{{labels}}} {number}");
        assert_metric(&pinned.pair.server, &line)?;
    }
    Ok(())
}
