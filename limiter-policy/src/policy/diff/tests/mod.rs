mod limits;
mod lists;
mod shown;
mod sieves;
mod standing;

use std::collections::BTreeMap;

use limiter_common::limit::{Cost, IdFormat, LimitId};

use super::*;
use crate::policy::{AutomaticBan, FlatMetrics, Match, Mode, Override, Reserve};

fn rate(burst: u64) -> Rate {
    Rate {
        burst,
        count: 10,
        period_ns: 1_500_000_000,
    }
}

fn overridden(id: &str, burst: u64) -> Override {
    Override {
        id: id.parse().unwrap(),
        rate: rate(burst),
        comment: None,
    }
}

fn limit(name: &str) -> Limit {
    Limit {
        id: LimitId(32),
        default: Some(rate(20)),
        overrides: vec![overridden("192.0.2.1", 1), overridden("192.0.2.2", 2)],
        ..Limit::with_name(name, IdFormat::IpAddress, Cost::Packets)
    }
}

/// Checks the difference, as shown, that a change makes to a policy of one limit and one
/// subscriber.
#[track_caller]
fn check(change: impl FnOnce(&mut Policy), expected: &[&str]) {
    let old = Policy {
        subscribers: BTreeMap::from([(7, vec!["198.51.100.0/24".parse().unwrap()])]),
        ..Policy::from(vec![limit("Web")])
    };
    let mut new = old.clone();
    change(&mut new);
    let diff = Diff::between(&old, &new);
    let shown = diff.to_string();
    assert_eq!(shown.lines().collect::<Vec<_>>(), expected, "\n{shown}");
    assert_eq!(diff.is_empty(), expected.is_empty());
}
