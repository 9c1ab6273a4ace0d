//! Automatic rates as text.

use limiter_protocol::{AutomaticRate, OverloadStatus};

use crate::render::{ago, count};

/// Describes a limit's rate in a line.
#[must_use]
pub fn line(limit: &str, automatic: &AutomaticRate) -> String {
    let AutomaticRate {
        rate,
        floor,
        ceiling,
        error,
        ..
    } = automatic;
    let rate = format!(
        "{limit}: {} a second, automatic from {} to {}",
        count(*rate),
        count(*floor),
        count(*ceiling)
    );
    if let Some(error) = error {
        return format!("{rate}: NOT FOUND, its floor is in force: {error}");
    }
    match last_overload(automatic) {
        None => format!("{rate}; no overload so far"),
        Some(last) => format!(
            "{rate}; last overload {}, in a {}",
            ago(last.ago_ns),
            last.kind.replace('-', " ").replace("cpu", "CPU")
        ),
    }
}

/// Returns the last sign of overload at a limit; `None`: there was none.
#[must_use]
pub fn last_overload(automatic: &AutomaticRate) -> Option<&OverloadStatus> {
    let heard = automatic.overload.iter();
    heard.min_by_key(|overload| overload.ago_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_force_and_why() {
        let overload = |kind: &str, seconds: u64| OverloadStatus {
            kind: kind.to_owned(),
            intervals: 3,
            ago_ns: seconds * 1_000_000_000,
        };
        let mut automatic = AutomaticRate {
            rate: 52_000,
            floor: 5_000,
            ceiling: 1_000_000,
            overload: Vec::new(),
            error: None,
        };
        let all = "All: 52 000 a second, automatic from 5 000 to 1 000 000";
        let reported = line("All", &automatic);
        assert_eq!(reported, format!("{all}; no overload so far"));
        automatic.overload = vec![overload("receive-buffer", 9), overload("backlog", 3)];
        let reported = line("All", &automatic);
        assert_eq!(
            reported,
            format!("{all}; last overload 3 s ago, in a backlog")
        );
        automatic.error = Some("no daemon runs".to_owned());
        let reported = line("All", &automatic);
        assert_eq!(
            reported,
            format!("{all}: NOT FOUND, its floor is in force: no daemon runs")
        );
    }
}
