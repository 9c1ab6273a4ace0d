//! Limits that ban only proven sources.

use anyhow::{Result, ensure};

use super::is_trusted;
use crate::{
    banned,
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
    succeed(pinned.with_pins("trust").arg(PROVEN))?;
    ensure!(is_trusted(&pinned.limiter, PROVEN)?);
    wait_for(|| {
        pinned.send(PROVEN, 300)?;
        Ok(!banned(&pinned.limiter)?.is_empty())
    })?;
    pinned.send(STRANGER, 300)?;
    let reported =
        "PacketsPerIPAddress does not ban 1, because they are not proven (`only: proven`)";
    pinned.limiter.wait_for_log(reported)?;
    assert_eq!(banned(&pinned.limiter)?, [format!("{PROVEN}/32")]);
    for (outcome, number) in [("banned", 1), ("not_proven", 1), ("refused", 0)] {
        let labels = format!("limit=\"PacketsPerIPAddress\",outcome=\"{outcome}\"");
        let line = format!("limiter_automatic_bans_total{{{labels}}} {number}");
        assert_metric(&pinned.pair.server, &line)?;
    }
    Ok(())
}
