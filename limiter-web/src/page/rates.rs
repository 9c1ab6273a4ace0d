//! Rates of the limits' counters, averaged over some seconds.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Instant,
};

use limiter_common::counters::LimitTraffic;

/// The span of the average, in seconds.
const SECONDS: usize = 10;

type LimitCounters = BTreeMap<String, LimitTraffic>;

/// The limits' counters in each of the last seconds.
#[derive(Default)]
pub(super) struct Rates(VecDeque<(Instant, LimitCounters)>);

/// A limit's rates, in packets per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct LimitRate {
    pub(super) passed: f64,
    pub(super) dropped: f64,
    pub(super) would_drop: f64,
}

impl Rates {
    /// Records the counters; called once a second.
    pub(super) fn record(&mut self, now: Instant, counted: Vec<(String, LimitTraffic)>) {
        if self.0.len() > SECONDS {
            self.0.pop_front();
        }
        self.0.push_back((now, counted.into_iter().collect()));
    }

    /// Returns each limit's rates; new limits have none yet.
    pub(super) fn of_limits(&self) -> BTreeMap<String, LimitRate> {
        let (Some((from, before)), Some((to, now))) = (self.0.front(), self.0.back()) else {
            return BTreeMap::new();
        };
        let seconds = to.saturating_duration_since(*from).as_secs_f64();
        if seconds <= 0.0 {
            return BTreeMap::new();
        }
        let rate = |name: &String, now: &LimitTraffic| {
            let before = before.get(name)?;
            let rate = |now: u64, before: u64| {
                #[expect(clippy::cast_precision_loss, reason = "nobody reads so many digits")]
                let new = now.checked_sub(before).unwrap_or(now) as f64;
                new / seconds
            };
            Some(LimitRate {
                passed: rate(now.passed.packets, before.passed.packets),
                dropped: rate(now.dropped.packets, before.dropped.packets),
                would_drop: rate(now.would_drop.packets, before.would_drop.packets),
            })
        };
        now.iter()
            .filter_map(|(name, now)| Some((name.clone(), rate(name, now)?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn over_the_last_seconds() {
        let begun = Instant::now();
        let mut rates = Rates::default();
        assert!(rates.of_limits().is_empty());
        for second in 0..100_u32 {
            let mut traffic = LimitTraffic::default();
            traffic.passed.packets = u64::from(second) * 5;
            traffic.dropped.packets = u64::from(second.saturating_sub(94)) * 10;
            let now = begun + Duration::from_secs(second.into());
            rates.record(now, vec![("All".to_owned(), traffic)]);
        }
        let all = rates.of_limits()["All"];
        assert!((all.passed - 5.0).abs() < 1e-9, "{all:?}");
        assert!((all.dropped - 5.0).abs() < 1e-9, "{all:?}");
    }
}
