//! The limits that apply to an address, as a table.

use limiter_common::strategy::Strategy;
use limiter_protocol::{LimitExplanation, ReserveExplanation};

use crate::render::{count, duration, table_without};

const HEADER: [&str; 13] = [
    "limit",
    "strategy",
    "mode",
    "match",
    "id",
    "interface",
    "source",
    "rate",
    "burst",
    "remaining",
    "reserve",
    "retry in",
    "reset in",
];

/// The right-aligned columns.
const RIGHT: [usize; 6] = [7, 8, 9, 10, 11, 12];

/// This column is shown if a limit does not use the default strategy.
const STRATEGY: usize = 1;

/// This column is shown if each interface has its own buckets.
const INTERFACE: usize = 5;

/// This column is shown if a limit has a burst.
const BURST: usize = 8;

/// This column is shown if a limit has a reserve.
const RESERVE: usize = 10;

/// Lays out the limits of an address, without columns that all leave empty.
pub fn table(limits: &[LimitExplanation]) -> String {
    let all = |is: fn(&LimitExplanation) -> bool| limits.iter().all(is);
    let is_usual = |limit: &LimitExplanation| limit.strategy == Strategy::default().name();
    let reserves = !all(|limit| limit.reserve.is_none());
    let hidden = [
        (STRATEGY, all(is_usual)),
        (INTERFACE, all(|limit| limit.interface.is_none())),
        (BURST, all(|limit| limit.burst.is_none())),
        (RESERVE, !reserves),
    ];
    let hidden = hidden.into_iter().filter(|(_, is_hidden)| *is_hidden);
    let hidden: Vec<_> = hidden.map(|(column, _)| column).collect();
    table_without(&hidden, HEADER, RIGHT, limits.iter().map(row))
}

fn row(limit: &LimitExplanation) -> [String; HEADER.len()] {
    let none = || "–".to_owned();
    let counted = limit.reserve.as_ref().filter(|_| !limit.other_standing);
    [
        limit.limit.clone(),
        limit.strategy.clone(),
        limit.mode.name().to_owned(),
        limit.matching.clone().unwrap_or_else(none),
        limit.id.clone(),
        limit.interface.clone().unwrap_or_default(),
        limit.source.clone(),
        match limit.connections {
            Some(open) => match limit.waiting {
                Some(waiting) => format!("{} open, {} in line", count(open), count(waiting)),
                None => format!("{} open", count(open)),
            },
            None => format!("{} per {}", count(limit.count), duration(limit.period_ns)),
        },
        limit.burst.map_or_else(none, count),
        count(limit.remaining),
        counted.map_or_else(none, reserve),
        (limit.connections).map_or_else(|| duration(limit.retry_in_ns), |_| none()),
        (limit.connections).map_or_else(|| duration(limit.reset_in_ns), |_| none()),
    ]
}

/// Formats the tokens that must be left, and whether a packet passes now.
fn reserve(reserve: &ReserveExplanation) -> String {
    let now = if reserve.passes { '✓' } else { '✗' };
    format!("{} {now}", count(reserve.tokens))
}

#[cfg(test)]
mod tests {
    use super::*;
    use limiter_protocol::testing;

    /// A limit of the address, and a shared one with a reserve.
    fn limits(passes: bool) -> Vec<LimitExplanation> {
        let one = || testing::explanation("198.51.100.200").limits.remove(0);
        let all = LimitExplanation {
            limit: "Everybody".to_owned(),
            id: "total".to_owned(),
            matching: Some("udp to port 53".to_owned()),
            burst: Some(50_000),
            count: 500_000,
            period_ns: 1_000_000_000,
            remaining: if passes { 30_000 } else { 24_999 },
            reserve: Some(ReserveExplanation {
                tokens: 25_000,
                passes,
                retry_in_ns: u64::from(!passes) * 2_000,
            }),
            ..one()
        };
        vec![one(), all]
    }

    /// Returns the cells of the last row of the last table. Only its numbers contain spaces.
    fn last_row(limits: &[LimitExplanation]) -> Vec<String> {
        let table = table(limits);
        let row = table.lines().last().unwrap();
        let cells = row.split("  ").filter(|cell| !cell.is_empty());
        cells.map(|cell| cell.trim().to_owned()).collect()
    }

    #[test]
    fn what_must_be_left_and_whether_that_refuses() {
        let row = last_row(&limits(true)[1..]);
        assert!(row.contains(&"30 000".to_owned()), "{row:?}");
        assert!(row.contains(&"25 000 ✓".to_owned()), "{row:?}");
        assert!(last_row(&limits(false)).contains(&"25 000 ✗".to_owned()));
        assert!(!table(&limits(false)[..1]).contains("reserve"));
    }
}
