//! Follows automatic rates during a flood.

use std::{
    collections::BTreeMap,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow};
use serde::Serialize;
use serde_json::Value;

use crate::cpu;

/// The interval at which the daemon changes the rates.
const EVERY: Duration = Duration::from_millis(250);

/// An automatic rate and its overload signals at one time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct RateSample {
    /// After the flood began.
    milliseconds: u128,
    limit: String,
    /// In tokens per second.
    rate: u64,
    /// In how many intervals so far the limit saw overload, by kind.
    overload: BTreeMap<String, u64>,
}

/// A thread that polls the rates until the value is dropped.
pub(super) struct Follower {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Vec<RateSample>>>>,
}

impl Follower {
    /// Starts polling with a command that shows the status as JSON.
    pub(super) fn start(mut status: Command) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let asks = Arc::clone(&ends);
        let thread = thread::spawn(move || {
            // Otherwise the flood would leave it a thirtieth of the CPU.
            cpu::hurry(0)?;
            let start = Instant::now();
            let mut rates = Vec::new();
            while !asks.load(Relaxed) {
                let output = status.output().context("cannot ask for the status")?;
                let reported =
                    serde_json::from_slice(&output.stdout).context("a strange status")?;
                rates.extend(read(&reported, start.elapsed())?);
                thread::sleep(EVERY);
            }
            Ok(rates)
        });
        Self {
            ends,
            thread: Some(thread),
        }
    }

    /// Returns the rates seen.
    pub(super) fn finish(mut self) -> Result<Vec<RateSample>> {
        self.ends.store(true, Relaxed);
        let Some(thread) = self.thread.take() else {
            return Ok(Vec::new());
        };
        thread
            .join()
            .map_err(|_| anyhow!("the thread that follows rates panicked"))?
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.ends.store(true, Relaxed);
        // An earlier error is already on its way.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Returns the automatic rates in a status.
fn read(status: &Value, after: Duration) -> Result<Vec<RateSample>> {
    let limits = status["limits"].as_object().context("no limits")?;
    let automatic = limits
        .iter()
        .filter(|(_, reported)| !reported["automatic"].is_null());
    automatic
        .map(|(limit, reported)| {
            let reported = &reported["automatic"];
            let of_kind = |heard: &Value| {
                let kind = heard["kind"].as_str()?.to_owned();
                Some((kind, heard["intervals"].as_u64()?))
            };
            let overload = reported["overload"].as_array().context("no overload")?;
            let overload: Option<_> = overload.iter().map(of_kind).collect();
            Ok(RateSample {
                milliseconds: after.as_millis(),
                limit: limit.clone(),
                rate: reported["rate"].as_u64().context("no rate")?,
                overload: overload.context("a strange overload")?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_automatic_rates_alone() {
        let status = json!({"limits": {
            "Fixed": {"passed_packets": 7},
            "Queries": {"automatic": {
                "rate": 20_000, "floor": 10_000, "ceiling": 200_000, "error": null,
                "overload": [{"kind": "full-cpu", "intervals": 3, "ago_ns": 5}],
            }},
        }});
        let found = read(&status, Duration::from_millis(1500)).unwrap();
        let expected = RateSample {
            milliseconds: 1500,
            limit: "Queries".to_owned(),
            rate: 20_000,
            overload: [("full-cpu".to_owned(), 3)].into(),
        };
        assert_eq!(found, [expected]);
        assert!(read(&json!({}), Duration::ZERO).is_err());
    }
}
