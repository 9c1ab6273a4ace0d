//! How much each owner sends at most within a second or ten: percentiles over the owners.

use std::{cmp::Reverse, collections::BTreeMap};

use limiter_common::limit::Cost;
use serde::Serialize;

use super::{drops::ratio, owners::Owners, record::Entry};

/// Percentiles of what owners send at most within a window of time, in tokens. Each is the lowest
/// peak that is at least as high as those of so many owners (the nearest rank).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    /// That of half of the owners.
    pub p50: u64,
    /// Of 90 %.
    pub p90: u64,
    /// Of 99 %.
    pub p99: u64,
    /// Of 99.9 %.
    pub p999: u64,
    /// The largest.
    pub max: u64,
}

impl Percentiles {
    /// Sums up peaks, which must be sorted.
    pub(super) fn of(peaks: &[u64]) -> Self {
        let at = |thousandths: usize| {
            let rank = (peaks.len() * thousandths).div_ceil(1000);
            peaks.get(rank.saturating_sub(1)).copied().unwrap_or(0)
        };
        Self {
            p50: at(500),
            p90: at(900),
            p99: at(990),
            p999: at(999),
            max: at(1000),
        }
    }
}

/// Returns what owners spent in windows of that length that begin at whole multiples of it, without
/// those in which an owner spent nothing: for each its owner and its tokens. If the clock goes back,
/// a window is several.
fn spent<'a>(
    entries: impl Iterator<Item = &'a Entry>,
    owners: &Owners,
    cost: Cost,
    window_ns: i64,
) -> Vec<(usize, u64)> {
    // The number of each owner's current window, and where it is.
    let mut current = vec![(0, usize::MAX); owners.count()];
    let mut windows: Vec<(usize, u64)> = Vec::new();
    for entry in entries {
        let (packets, each) = entry.sent.counted(cost);
        let tokens = u64::from(packets) * each;
        let Some(owner) = owners.of_entry(entry).filter(|_| tokens > 0) else {
            continue;
        };
        let number = entry.at_ns.div_euclid(window_ns);
        match windows.get_mut(current[owner].1) {
            Some((_, sum)) if current[owner].0 == number => *sum += tokens,
            _ => {
                current[owner] = (number, windows.len());
                windows.push((owner, tokens));
            }
        }
    }
    windows
}

/// Returns the most tokens of each owner that spent any, in windows of that length; sorted.
pub(super) fn peaks<'a>(
    entries: impl Iterator<Item = &'a Entry>,
    owners: &Owners,
    cost: Cost,
    window_ns: i64,
) -> Vec<u64> {
    let mut peaks = vec![0; owners.count()];
    for (owner, tokens) in spent(entries, owners, cost, window_ns) {
        peaks[owner] = tokens.max(peaks[owner]);
    }
    peaks.retain(|peak| *peak > 0);
    peaks.sort_unstable();
    peaks
}

/// Returns the tokens of a window of which the busier ones have at most that share of all tokens,
/// and those of the busiest window; `None`: there is none.
pub(super) fn busy<'a>(
    entries: impl Iterator<Item = &'a Entry>,
    owners: &Owners,
    cost: Cost,
    window_ns: i64,
    share: f64,
) -> Option<(u64, u64)> {
    let windows = spent(entries, owners, cost, window_ns);
    let mut windows: Vec<_> = windows.into_iter().map(|(_, tokens)| tokens).collect();
    windows.sort_unstable_by_key(|tokens| Reverse(*tokens));
    let all: u64 = windows.iter().sum();
    let mut busier = 0;
    let busy = windows.iter().find(|tokens| {
        busier += **tokens;
        ratio(busier, all) > share
    });
    Some((*busy?, *windows.first()?))
}

/// Returns the packets in each window of that length, all owners together, from the first to the
/// last with one; without those in between that have none.
pub(super) fn windows(entries: &[Entry], window_ns: i64) -> BTreeMap<i64, u64> {
    let mut windows = BTreeMap::new();
    for entry in entries {
        *windows
            .entry(entry.at_ns.div_euclid(window_ns))
            .or_insert(0) += u64::from(entry.sent.packets);
    }
    windows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_ranks() {
        let thousand: Vec<u64> = (1..=1000).collect();
        let percentiles = Percentiles::of(&thousand);
        assert_eq!((percentiles.p50, percentiles.p90), (500, 900));
        assert_eq!(
            (percentiles.p99, percentiles.p999, percentiles.max),
            (990, 999, 1000)
        );
        let few = Percentiles::of(&[1, 5]);
        assert_eq!((few.p50, few.p90, few.max), (1, 5, 5));
        assert_eq!(Percentiles::of(&[]), Percentiles::default());
    }
}
