//! What was counted never becomes less.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::policies::AT_TIMES;

/// The largest number that each counter of `limiter status --json` has had.
#[derive(Debug, Default)]
pub(crate) struct Counters(BTreeMap<String, u64>);

impl Counters {
    /// Fails if one is less than it was, whether a daemon told it or what is pinned. A limit that
    /// is not in force has none, until it is again.
    pub(crate) fn advance(&mut self, status: &Value) -> Result<()> {
        let mut now = BTreeMap::new();
        collect("reasons", &status["reasons"], &mut now)?;
        collect("limits", &status["limits"], &mut now)?;
        for (name, count) in now {
            let before = self.0.entry(name.clone()).or_default();
            ensure!(
                count >= *before,
                "{name} goes from {before} back to {count}"
            );
            *before = count;
        }
        Ok(())
    }

    /// A policy may have been given up: a limit that only such a policy had begins anew when
    /// another has it.
    pub(crate) fn give_up(&mut self) {
        let is_at_times = |name: &str| {
            let mut names = AT_TIMES.iter();
            names.any(|limit| name.starts_with(&format!("limits.{limit}.")))
        };
        self.0.retain(|name, _| !is_at_times(name));
    }
}

fn collect(name: &str, value: &Value, into: &mut BTreeMap<String, u64>) -> Result<()> {
    match value {
        Value::Object(fields) => fields
            .iter()
            .try_for_each(|(field, value)| collect(&format!("{name}.{field}"), value, into))?,
        Value::Number(number) => {
            let number = number.as_u64().context("counters are whole numbers")?;
            into.insert(name.to_owned(), number);
        }
        // A limit's mode.
        _ => {}
    }
    Ok(())
}

/// How many packets the program has judged.
pub(crate) fn judged(status: &Value) -> Result<u64> {
    let reasons = status["reasons"].as_object().context("reasons are told")?;
    Ok(reasons.values().filter_map(Value::as_u64).sum())
}
