//! What is in a sieve, and putting it back.

use std::sync::atomic::{Ordering::Acquire, fence};

use limiter_common::{
    sieve::{Entry, Listed, Shard, Sieve, put_back},
    table::HashKey,
};

use super::SieveMemory;

/// How often a shard is copied in the hope that nobody is at it meanwhile.
const TRIES: usize = 8;

/// All that is in a sieve, shard by shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SieveSnapshot {
    /// Those of its shards.
    pub shards: Vec<ShardLists>,
}

/// All that is in a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardLists {
    /// From list 0 to the entry list; of each, who was hit last comes first.
    pub lists: Vec<Vec<Listed>>,
    /// Whether it was so at one moment. Otherwise packets kept changing it while it was read, and
    /// some of those that were moved meanwhile may be missing.
    pub is_exact: bool,
}

impl SieveSnapshot {
    /// All of a list, in no order between the shards.
    pub fn list(&self, list: u32) -> impl Iterator<Item = &Listed> {
        let shards = self.shards.iter();
        shards.flat_map(move |shard| shard.lists.get(list as usize).into_iter().flatten())
    }
}

impl SieveMemory<'_> {
    /// What is in a sieve now. Takes no lock, so that nobody waits for who reads.
    #[must_use]
    pub fn snapshot(&self, sieve: &Sieve) -> SieveSnapshot {
        let entries = sieve.geometry.entries() as usize;
        let shards = (0..sieve.geometry.shards() as usize).filter_map(|number| {
            let shard = self.shards.get(sieve.region.shards as usize + number)?;
            let first = sieve.region.entries as usize + number * entries;
            let entries = self.entries.get(first..first + entries)?;
            Some(lists(sieve, shard, entries))
        });
        SieveSnapshot {
            shards: shards.collect(),
        }
    }

    /// Puts back what was in a sieve, into one that is empty and that nobody uses yet; it may have
    /// other shards or another secret, or be of another size. Returns how many had no room.
    #[must_use]
    pub fn restore(&self, sieve: &Sieve, hash_key: &HashKey, snapshot: &SieveSnapshot) -> usize {
        let mut left_out = 0;
        for list in 0..=sieve.geometry.buckets {
            for shard in &snapshot.shards {
                let listed = shard.lists.get(list as usize).into_iter().flatten();
                // Who was hit last comes to the front last.
                for listed in listed.rev() {
                    left_out += usize::from(!put_back(self, sieve, hash_key, list, listed));
                }
            }
        }
        left_out
    }
}

/// A copy of an entry.
#[derive(Clone, Copy)]
struct Copied {
    listed: Listed,
    next: u32,
}

fn lists(sieve: &Sieve, shard: &Shard, entries: &[Entry]) -> ShardLists {
    let mut copied = Vec::new();
    let mut is_exact = false;
    for _ in 0..TRIES {
        let before = shard.sequence.atomic().load(Acquire);
        let used = (sieve.geometry.first_entry() + shard.used()) as usize;
        copied.clear();
        copied.extend((0..).zip(entries).take(used).map(|(number, entry)| Copied {
            listed: Listed {
                key: entry.key(),
                count: entry.count(),
                added_ns: entry.added_ns(),
            },
            next: entry.next(number),
        }));
        fence(Acquire);
        is_exact = before & 1 == 0 && shard.sequence.atomic().load(Acquire) == before;
        if is_exact {
            break;
        }
    }
    // Nobody twice, whatever the links of a copy in motion say.
    let mut seen = vec![false; copied.len()];
    let lists = (0..=sieve.geometry.buckets).map(|list| {
        let mut listed = Vec::new();
        let mut number = list;
        while let Some(entry) = copied.get(number as usize) {
            number = entry.next;
            let is_new = seen
                .get_mut(number as usize)
                .is_some_and(|seen| !std::mem::replace(seen, true));
            if number < sieve.geometry.first_entry() || !is_new {
                break;
            }
            listed.extend(copied.get(number as usize).map(|entry| entry.listed));
        }
        listed
    });
    ShardLists {
        lists: lists.collect(),
        is_exact,
    }
}
