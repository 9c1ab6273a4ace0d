//! A reload that changes `buckets` or `offenders` makes new maps and keeps their content.

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::pinned::Pinned;

const CLIENT: &str = "10.77.0.2";
const LIMIT: &str = "PacketsPerIPAddress";

fn configuration(settings: &str) -> String {
    format!("{settings}limits: {{PacketsPerIPAddress: {{burst: 10, count: 1, period: 1h}}}}\n")
}

fn counted(pinned: &Pinned) -> Result<[u64; 3]> {
    let status = pinned.limiter.status()?;
    let offenders = pinned.limiter.show(&["offenders", "--json"])?;
    let offenders: Value = serde_json::from_str(&offenders)?;
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    Ok([
        number(&status["reasons"]["within_limits"]),
        number(&status["limits"][LIMIT]["dropped_packets"]),
        number(&offenders["recorded"]),
    ])
}

#[test]
fn buckets_of_another_size_owe_the_same() -> Result<()> {
    let mut pinned = Pinned::start(&configuration("buckets: {capacity: 4096}\n"))?;
    pinned.send(CLIENT, 4)?;
    ensure!(pinned.remaining(LIMIT, CLIENT)? == 6);
    for settings in [
        // Larger, smaller, and with another number of offenders.
        "buckets: {capacity: 65536}\n",
        "buckets: {capacity: 1024}\n",
        "buckets: {capacity: 1024}\noffenders: {capacity: 1024}\n",
        // Shared buckets become per-interface ones, and the other way round.
        "buckets: {capacity: 1024, scope: interface}\noffenders: {capacity: 1024}\n",
        "buckets: {capacity: 1024, scope: host}\noffenders: {capacity: 1024}\n",
    ] {
        pinned.reload(&configuration(settings))?;
        ensure!(
            pinned.remaining(LIMIT, CLIENT)? == 6,
            "{settings}: {}",
            pinned.remaining(LIMIT, CLIENT)?
        );
    }
    // The next daemon adopts them.
    pinned.limiter.kill()?;
    ensure!(pinned.remaining(LIMIT, CLIENT)? == 6);
    pinned.limiter.restart()?;
    pinned.send(CLIENT, 8)?;
    ensure!(pinned.remaining(LIMIT, CLIENT)? == 0);
    Ok(())
}

/// Buckets move from the hash store, which has their keys, to the table, but not back.
#[test]
fn buckets_of_another_store() -> Result<()> {
    let pinned = Pinned::start(&configuration("buckets: {store: hash, capacity: 4096}\n"))?;
    pinned.send(CLIENT, 4)?;
    ensure!(pinned.remaining(LIMIT, CLIENT)? == 6);
    pinned.reload(&configuration("buckets: {store: table}\n"))?;
    ensure!(pinned.remaining(LIMIT, CLIENT)? == 6);
    pinned.reload(&configuration("buckets: {store: hash}\n"))?;
    ensure!(pinned.remaining(LIMIT, CLIENT)? == 10);
    let log = pinned.limiter.log()?;
    ensure!(log.contains("their key is unknown (buckets: 1)"), "{log}");
    Ok(())
}

#[test]
fn counters_do_not_begin_anew_with_the_buckets() -> Result<()> {
    let pinned = Pinned::start(&configuration("buckets: {capacity: 4096}\n"))?;
    pinned.send(CLIENT, 15)?;
    ensure!(counted(&pinned)? == [10, 5, 5]);
    for settings in [
        "buckets: {capacity: 65536}\n",
        "buckets: {store: hash, capacity: 65536}\n",
        "buckets: {store: hash, capacity: 65536}\noffenders: {capacity: 1024}\n",
    ] {
        pinned.reload(&configuration(settings))?;
        ensure!(counted(&pinned)? == [10, 5, 5], "{settings}");
    }
    Ok(())
}
