//! Reads from a sieve without copying it.

use limiter_common::{
    address::Address,
    sieve::{ListedSource, Sieve, find_listed},
    table::HashKey,
};

use super::SieveMemory;

impl SieveMemory<'_> {
    /// The number of addresses in each list of a sieve, from list 0 to the entry list.
    #[must_use]
    pub fn counts(&self, sieve: &Sieve) -> Vec<u64> {
        let shards = 0..sieve.geometry.shards() as usize;
        let of_shard = sieve.geometry.entries() as usize;
        let in_list = |list: u32| {
            let starts = shards.clone().filter_map(|shard| {
                // The entry at a list's start has the list's length.
                let start = sieve.region.entries as usize + shard * of_shard + list as usize;
                self.entries.get(start)
            });
            starts.map(|start| u64::from(start.count())).sum()
        };
        (0..=sieve.geometry.list_count).map(in_list).collect()
    }

    /// The entry of a source, with the number of its list; `None`: the source is not there.
    #[must_use]
    pub fn find(
        &self,
        sieve: &Sieve,
        hash_key: &HashKey,
        source: &Address,
    ) -> Option<(u32, ListedSource)> {
        find_listed(self, sieve, hash_key, &sieve.key(source))
    }
}
