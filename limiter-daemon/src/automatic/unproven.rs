//! Logs the number of offenders that were not banned because they are not proven, once a minute: a forged flood has
//! many.

use std::{collections::BTreeMap, mem};

use limiter_common::limit::LimitId;
use limiter_policy::{policy::Policy, text::count};
use tracing::info;

use crate::offenders::limit_name;

const MINUTE_NS: u64 = 60_000_000_000;

/// Offenders not logged yet, by limit.
#[derive(Debug, Default)]
pub(super) struct UnprovenCounts {
    unreported: BTreeMap<LimitId, u64>,
    /// When the next line is due.
    due_ns: u64,
}

impl UnprovenCounts {
    pub(super) fn add(&mut self, found: &BTreeMap<LimitId, u64>) {
        for (limit, number) in found {
            *self.unreported.entry(*limit).or_default() += number;
        }
    }

    /// Takes the numbers to log; `None`: there are none, or the minute is not over.
    pub(super) fn due(&mut self, now_ns: u64) -> Option<BTreeMap<LimitId, u64>> {
        if self.unreported.is_empty() || now_ns < self.due_ns {
            return None;
        }
        self.due_ns = now_ns.saturating_add(MINUTE_NS);
        Some(mem::take(&mut self.unreported))
    }
}

pub(super) fn log(policy: &Policy, unproven: &BTreeMap<LimitId, u64>) {
    for (LimitId(limit), number) in unproven {
        if let Some(limit) = limit_name(policy, *limit) {
            info!(
                limit,
                number,
                "{limit} does not ban {}, because they are not proven (`only: proven`)",
                count(*number)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn told_once_a_minute() {
        let mut unproven = UnprovenCounts::default();
        assert_eq!(unproven.due(0), None);
        let found: BTreeMap<_, _> = [(LimitId(7), 3)].into();
        unproven.add(&found);
        assert_eq!(unproven.due(5), Some(found.clone()));
        unproven.add(&found);
        unproven.add(&found);
        assert_eq!(unproven.due(MINUTE_NS), None);
        assert_eq!(unproven.due(MINUTE_NS + 5), Some([(LimitId(7), 6)].into()));
        assert_eq!(unproven.due(u64::MAX), None);
    }
}
