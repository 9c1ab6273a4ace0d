//! The lists of a sieve, for responses.

use std::{cmp::Reverse, net::IpAddr};

use ipnet::IpNet;
use limiter_common::{
    address::Family,
    sieve::{self, ListedSource},
};
use limiter_native::SieveMemory;
use limiter_policy::policy::{OverrideId, Sieve};

use limiter_protocol::sieves::{BUSIEST, SieveEntry, SieveListStatus};

/// Returns the lists of a sieve, from list 0 to the entry list, with the busiest entries of each. `compiled` is the
/// datapath's form of the same sieve. Ages are relative to `now_ns`, in nanoseconds of the decision's clock.
#[must_use]
pub fn lists(
    sieve: &Sieve,
    compiled: &sieve::Sieve,
    memory: &SieveMemory<'_>,
    now_ns: u64,
) -> Vec<SieveListStatus> {
    let snapshot = memory.snapshot(compiled);
    let lists = (0..=sieve.buckets).map(|list| {
        let mut entries: Vec<_> = snapshot.list(list.into()).collect();
        let count = entries.len() as u64;
        // Only the busiest are sorted: a list may hold a million.
        if entries.len() > BUSIEST {
            entries.select_nth_unstable_by_key(BUSIEST, |entry| busiest_first(entry));
            entries.truncate(BUSIEST);
        }
        entries.sort_unstable_by_key(|entry| busiest_first(entry));
        let busiest = entries.into_iter();
        SieveListStatus {
            list,
            capacity: sieve.capacity(list),
            entries: count,
            busiest: busiest.map(|held| entry(sieve, held, now_ns)).collect(),
        }
    });
    lists.collect()
}

/// The address behind the count makes the order reproducible.
fn busiest_first(held: &ListedSource) -> impl Ord + use<> {
    (Reverse(held.count), IpAddr::from(held.key))
}

/// Describes an entry of a sieve at a time of the decision's clock, in nanoseconds.
#[must_use]
pub fn entry(sieve: &Sieve, held: &ListedSource, now_ns: u64) -> SieveEntry {
    let address = IpAddr::from(held.key);
    let is_range = held.key.family == Family::V6 && sieve.ipv6_prefix < 128;
    let range = IpNet::new(address, sieve.ipv6_prefix).ok();
    SieveEntry {
        id: range.filter(|_| is_range).map_or_else(
            || address.to_string(),
            |prefix| OverrideId::Prefix(prefix).to_string(),
        ),
        count: held.count,
        age_ns: now_ns.saturating_sub(held.added_ns),
    }
}
