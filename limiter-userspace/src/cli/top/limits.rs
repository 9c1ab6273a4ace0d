//! The traffic of each limit, and its rates.

use std::{collections::BTreeMap, time::Duration};

use limiter_common::limit::Cost;
use limiter_policy::policy::{Mode, Rate};
use limiter_protocol::LimitStatus;
use serde::Serialize;

use super::rise::per_second;

#[derive(Debug, Serialize)]
pub(super) struct LimitRates {
    /// The mode, which decides whether it drops packets.
    pub(super) mode: Mode,
    /// The unit it counts.
    pub(super) cost: String,
    /// The rate of a key without an override; `None`: such a key has none.
    pub(super) rate: Option<Rate>,
    /// How many connections such a key may have open at once; `None`: the limit has no such number.
    pub(super) connections: Option<u64>,
    /// How many open connections it counts, of all keys together; `None`: it counts none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) open: Option<u64>,
    /// How many clients wait for connections to end; `None`: the limit has no queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) waiting: Option<u64>,
    /// Packets that it passed.
    pub(super) passed_packets: u64,
    /// Packets that it dropped, or would have if it enforced.
    pub(super) refused_packets: u64,
    /// Packets that passed, per second; `None`: not known yet.
    pub(super) passed_packets_per_second: Option<f64>,
    /// Packets that it dropped, or would have, per second; `None`: not known yet.
    pub(super) refused_packets_per_second: Option<f64>,
}

/// By limit, the packets that passed and that were refused.
pub(super) type LimitCounts = BTreeMap<String, [u64; 2]>;

pub(super) fn counts(limits: &BTreeMap<String, LimitStatus>) -> LimitCounts {
    let counts = limits.iter();
    let counts = counts.map(|(name, status)| (name.clone(), outcomes(status)));
    counts.collect()
}

/// Returns the limits' traffic, with rates since the counts `before`.
pub(super) fn rates(
    limits: &BTreeMap<String, LimitStatus>,
    before: Option<(&LimitCounts, Duration)>,
) -> BTreeMap<String, LimitRates> {
    let of_each = limits.iter().map(|(name, status)| {
        let [passed, refused] = outcomes(status);
        let known = before.and_then(|(before, elapsed)| Some((before.get(name)?, elapsed)));
        let rose = |index: usize, now: u64| {
            let (before, elapsed) = known?;
            per_second(now.checked_sub(*before.get(index)?)?, elapsed)
        };
        let rates = LimitRates {
            mode: status.mode,
            cost: status.cost.clone(),
            rate: status.rate,
            connections: status.connections,
            open: status.open,
            waiting: status.queue.as_ref().map(|queue| queue.waiting),
            passed_packets: passed,
            refused_packets: refused,
            passed_packets_per_second: rose(0, passed),
            refused_packets_per_second: rose(1, refused),
        };
        (name.clone(), rates)
    });
    of_each.collect()
}

impl LimitRates {
    pub(super) fn is_of_connections(&self) -> bool {
        self.cost == Cost::Connections.name()
    }
}

const fn outcomes(status: &LimitStatus) -> [u64; 2] {
    [
        status.passed_packets,
        status.dropped_packets + status.would_drop_packets,
    ]
}

#[cfg(test)]
mod tests {
    use super::{super::testing::limit, *};

    #[test]
    fn what_rose_and_what_began_anew() {
        let at = |numbers: [[u64; 2]; 2]| {
            let named = ["A", "B"].map(ToOwned::to_owned).into_iter().zip(numbers);
            named
                .map(|(name, [passed, dropped])| (name, limit(passed, dropped)))
                .collect::<BTreeMap<_, _>>()
        };
        let before = counts(&at([[10, 100], [50, 0]]));
        let now = at([[30, 500], [7, 9]]);
        let shown = |rates: &BTreeMap<String, LimitRates>| {
            let of_each = rates.values().map(|rates| {
                [
                    rates.passed_packets_per_second,
                    rates.refused_packets_per_second,
                ]
            });
            of_each.collect::<Vec<_>>()
        };
        let unknown = rates(&now, None);
        assert_eq!(shown(&unknown), [[None; 2]; 2]);
        assert_eq!(unknown["A"].refused_packets, 500);
        let known = rates(&now, Some((&before, Duration::from_secs(2))));
        assert_eq!(
            shown(&known),
            [[Some(10.0), Some(200.0)], [None, Some(4.5)]]
        );
    }
}
