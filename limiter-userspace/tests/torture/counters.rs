//! No counter ever decreases.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::policies::AT_TIMES;

/// The fields of a limit's status that repeat its configuration, and so differ between policies.
const CONFIGURED: [&str; 2] = ["rate", "connections"];

/// The highest value so far of each counter of `limiter status --json`.
#[derive(Debug, Default)]
pub(crate) struct Counters(BTreeMap<String, u64>);

impl Counters {
    /// Fails if a counter has decreased, read from the daemon or from the pins. A limit outside the
    /// active policy has no counters.
    pub(crate) fn advance(&mut self, status: &Value) -> Result<()> {
        let mut now = BTreeMap::new();
        collect("reasons", &status["reasons"], &mut now)?;
        collect("limits", &status["limits"], &mut now)?;
        for (name, count) in now {
            let before = self.0.entry(name.clone()).or_default();
            ensure!(
                count >= *before,
                "{name} went from {before} back to {count}"
            );
            *before = count;
        }
        Ok(())
    }

    /// Lets counters restart for limits that only a reverted policy had.
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
            .filter(|(field, _)| !CONFIGURED.contains(&field.as_str()))
            .try_for_each(|(field, value)| collect(&format!("{name}.{field}"), value, into))?,
        Value::Number(number) => {
            let number = number.as_u64().context("a counter is not a whole number")?;
            into.insert(name.to_owned(), number);
        }
        // Strings, such as a limit's mode.
        _ => {}
    }
    Ok(())
}

pub(crate) fn decided_packets(status: &Value) -> Result<u64> {
    let reasons = status["reasons"]
        .as_object()
        .context("status shows no reasons")?;
    Ok(reasons.values().filter_map(Value::as_u64).sum())
}
