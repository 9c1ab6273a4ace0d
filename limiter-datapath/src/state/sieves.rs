//! Saved contents of sieves.

use std::net::IpAddr;

use limiter_common::sieve::ListedSource;
use limiter_policy::policy::Sieve;
use serde::{Deserialize, Serialize};

use limiter_native::{ShardLists, SieveSnapshot};

/// The contents of a sieve, under its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedSieve {
    /// The name.
    pub name: String,
    /// The number of lists besides list 0.
    pub buckets: u8,
    /// The binary logarithm of the entry list's capacity.
    pub size: u8,
    /// The number of leading bits of an IPv6 address that are scored.
    pub ipv6_prefix: u8,
    /// The shards, with their lists from list 0 on, each most recently hit first.
    shards: Vec<Vec<Vec<SavedEntry>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SavedEntry {
    address: IpAddr,
    count: u32,
    age_ns: u64,
}

impl SavedSieve {
    /// Saves a sieve's contents at the time `now_ns` of the decision's clock.
    #[must_use]
    pub fn new(sieve: &Sieve, snapshot: &SieveSnapshot, now_ns: u64) -> Self {
        let saved = |listed: &ListedSource| SavedEntry {
            address: listed.key.into(),
            count: listed.count,
            age_ns: now_ns.saturating_sub(listed.added_ns),
        };
        let list = |list: &Vec<ListedSource>| list.iter().map(saved).collect();
        let shards = snapshot.shards.iter();
        Self {
            name: sieve.name.clone(),
            buckets: sieve.buckets,
            size: sieve.size,
            ipv6_prefix: sieve.ipv6_prefix,
            shards: shards
                .map(|shard| shard.lists.iter().map(list).collect())
                .collect(),
        }
    }

    /// Whether `sieve` has the same name and lists.
    #[must_use]
    pub fn fits(&self, sieve: &Sieve) -> bool {
        (&self.name, self.buckets, self.size, self.ipv6_prefix)
            == (&sieve.name, sieve.buckets, sieve.size, sieve.ipv6_prefix)
    }

    /// The contents `passed_ns` later, at the time `now_ns` of the decision's clock. That clock
    /// starts at boot, so an address from before the boot gets the machine's uptime as its age, and
    /// expires later than it would have.
    #[must_use]
    pub fn snapshot(&self, now_ns: u64, passed_ns: u64) -> SieveSnapshot {
        let listed = |entry: &SavedEntry| ListedSource {
            key: entry.address.into(),
            count: entry.count,
            added_ns: now_ns.saturating_sub(entry.age_ns.saturating_add(passed_ns)),
        };
        let list = |list: &Vec<SavedEntry>| list.iter().map(listed).collect();
        let shards = self.shards.iter().map(|lists| ShardLists {
            lists: lists.iter().map(list).collect(),
            is_exact: true,
        });
        SieveSnapshot {
            shards: shards.collect(),
        }
    }

    /// The number of addresses in it.
    #[must_use]
    pub fn count(&self) -> usize {
        self.shards.iter().flatten().map(Vec::len).sum()
    }
}
