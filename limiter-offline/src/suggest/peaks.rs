//! The peak of each key within a second or ten, as percentiles over the keys.

use std::{cmp::Reverse, collections::BTreeMap};

use limiter_common::limit::Cost;
use serde::Serialize;

use super::{drops::ratio, keys::Keys, record::Entry};

/// Percentiles over keys of their peak within a window of time, in tokens, by the nearest rank: each is the
/// lowest peak that this fraction of the keys does not exceed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    /// The peak of the median key.
    pub p50: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The 99.9th percentile.
    pub p999: u64,
    /// The largest.
    pub max: u64,
}

impl Percentiles {
    /// Sums up peaks in ascending order.
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

/// Sums up each key's tokens by window, as pairs of key and tokens. Windows start at multiples of their
/// length; windows without tokens are left out. If the clock goes back, a window may occur several times.
fn spent<'a>(
    entries: impl Iterator<Item = &'a Entry>,
    keys: &Keys,
    cost: Cost,
    window_ns: i64,
) -> Vec<(usize, u64)> {
    // The number of each key's current window, and its index in `windows`.
    let mut current = vec![(0, usize::MAX); keys.count()];
    let mut windows: Vec<(usize, u64)> = Vec::new();
    for entry in entries {
        let (packets, each) = entry.sent.amount(cost);
        let tokens = u64::from(packets) * each;
        let Some(key) = keys.of_entry(entry).filter(|_| tokens > 0) else {
            continue;
        };
        let number = entry.at_ns.div_euclid(window_ns);
        match windows.get_mut(current[key].1) {
            Some((_, sum)) if current[key].0 == number => *sum += tokens,
            _ => {
                current[key] = (number, windows.len());
                windows.push((key, tokens));
            }
        }
    }
    windows
}

/// Returns each key's highest sum in a window, ascending; keys without tokens are left out.
pub(super) fn peaks<'a>(
    entries: impl Iterator<Item = &'a Entry>,
    keys: &Keys,
    cost: Cost,
    window_ns: i64,
) -> Vec<u64> {
    let mut peaks = vec![0; keys.count()];
    for (key, tokens) in spent(entries, keys, cost, window_ns) {
        peaks[key] = tokens.max(peaks[key]);
    }
    peaks.retain(|peak| *peak > 0);
    peaks.sort_unstable();
    peaks
}

/// Skips the busiest windows that together hold at most `fraction` of all tokens. Returns the tokens of the
/// next window, and of the busiest of all; `None`: there are no windows.
pub(super) fn busy<'a>(
    entries: impl Iterator<Item = &'a Entry>,
    keys: &Keys,
    cost: Cost,
    window_ns: i64,
    fraction: f64,
) -> Option<(u64, u64)> {
    let windows = spent(entries, keys, cost, window_ns);
    let mut windows: Vec<_> = windows.into_iter().map(|(_, tokens)| tokens).collect();
    windows.sort_unstable_by_key(|tokens| Reverse(*tokens));
    let all: u64 = windows.iter().sum();
    let mut busier = 0;
    let busy = windows.iter().find(|tokens| {
        busier += **tokens;
        ratio(busier, all) > fraction
    });
    Some((*busy?, *windows.first()?))
}

/// Returns the packets of all keys by window; windows without packets are left out.
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
