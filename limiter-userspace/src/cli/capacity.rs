//! Automatic rates as text.

use super::render::{ago, count};
use crate::protocol::{AutomaticRate, OverloadStatus};

/// Describes a limit's rate in a line.
pub(crate) fn line(limit: &str, automatic: &AutomaticRate) -> String {
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
    match last_distress(automatic) {
        None => format!("{rate}; no distress so far"),
        Some(last) => format!(
            "{rate}; last distress {}, in a {}",
            ago(last.ago_ns),
            last.kind.replace('-', " ").replace("cpu", "CPU")
        ),
    }
}

/// Returns the last sign of overload at a limit; `None`: there was none.
pub(super) fn last_distress(automatic: &AutomaticRate) -> Option<&OverloadStatus> {
    let heard = automatic.distress.iter();
    heard.min_by_key(|distress| distress.ago_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_force_and_why() {
        let distress = |kind: &str, seconds: u64| OverloadStatus {
            kind: kind.to_owned(),
            intervals: 3,
            ago_ns: seconds * 1_000_000_000,
        };
        let mut automatic = AutomaticRate {
            rate: 52_000,
            floor: 5_000,
            ceiling: 1_000_000,
            distress: Vec::new(),
            error: None,
        };
        let all = "All: 52 000 a second, automatic from 5 000 to 1 000 000";
        let told = line("All", &automatic);
        assert_eq!(told, format!("{all}; no distress so far"));
        automatic.distress = vec![distress("receive-buffer", 9), distress("backlog", 3)];
        let told = line("All", &automatic);
        assert_eq!(told, format!("{all}; last distress 3 s ago, in a backlog"));
        automatic.error = Some("no daemon runs".to_owned());
        let told = line("All", &automatic);
        assert_eq!(
            told,
            format!("{all}: NOT FOUND, its floor is in force: no daemon runs")
        );
    }
}
