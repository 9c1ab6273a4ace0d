//! Captures and restores a sieve.

use std::sync::atomic::{Ordering::Acquire, fence};

use limiter_common::{
    sieve::{Entry, ListedSource, Shard, Sieve, put_back},
    table::HashKey,
};

use super::SieveMemory;

/// The number of attempts to copy a shard without a concurrent change.
const TRIES: usize = 8;

/// The contents of a sieve, by shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SieveSnapshot {
    /// The contents of each shard.
    pub shards: Vec<ShardLists>,
}

/// The contents of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardLists {
    /// The lists, from list 0 to the entry list; each list most recently hit first.
    pub lists: Vec<Vec<ListedSource>>,
    /// Whether this is the state of one moment. If not, packets kept changing the shard during the
    /// copy, and addresses that moved meanwhile may be missing.
    pub is_exact: bool,
}

impl SieveSnapshot {
    /// The entries of a list in all shards, in no order between the shards.
    pub fn list(&self, list: u32) -> impl Iterator<Item = &ListedSource> {
        let shards = self.shards.iter();
        shards.flat_map(move |shard| shard.lists.get(list as usize).into_iter().flatten())
    }
}

impl SieveMemory<'_> {
    /// Captures a sieve now. Takes no lock, so that no packet waits for the reader.
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

    /// Restores a sieve's contents into an empty, unused sieve. It may have other shards, another
    /// secret or another size. Returns the number of addresses without room.
    #[must_use]
    pub fn restore(&self, sieve: &Sieve, hash_key: &HashKey, snapshot: &SieveSnapshot) -> usize {
        let mut left_out = 0;
        for list in 0..=sieve.geometry.list_count {
            for shard in &snapshot.shards {
                let listed = shard.lists.get(list as usize).into_iter().flatten();
                // The most recently hit entry is put to the front last.
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
struct EntryCopy {
    listed: ListedSource,
    next: u32,
}

fn lists(sieve: &Sieve, shard: &Shard, entries: &[Entry]) -> ShardLists {
    let mut copied = Vec::new();
    let mut is_exact = false;
    for _ in 0..TRIES {
        let before = shard.sequence.atomic().load(Acquire);
        let used = (sieve.geometry.first_entry() + shard.used()) as usize;
        copied.clear();
        copied.extend(
            (0..)
                .zip(entries)
                .take(used)
                .map(|(number, entry)| EntryCopy {
                    listed: ListedSource {
                        key: entry.key(),
                        count: entry.count(),
                        added_ns: entry.added_ns(),
                    },
                    next: entry.next(number),
                }),
        );
        fence(Acquire);
        is_exact = before & 1 == 0 && shard.sequence.atomic().load(Acquire) == before;
        if is_exact {
            break;
        }
    }
    // The links in a copy of a changing shard may form a cycle: take each entry once.
    let mut seen = vec![false; copied.len()];
    let lists = (0..=sieve.geometry.list_count).map(|list| {
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
