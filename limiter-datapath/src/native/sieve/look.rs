//! What can be told of a sieve without copying it.

use limiter_common::{
    address::Address,
    sieve::{Listed, Sieve, listed},
    table::HashKey,
};

use super::SieveMemory;

impl SieveMemory<'_> {
    /// How many addresses are in each list of a sieve, from list 0 to the entry list.
    #[must_use]
    pub fn counts(&self, sieve: &Sieve) -> Vec<u64> {
        let shards = 0..sieve.geometry.shards() as usize;
        let of_shard = sieve.geometry.entries() as usize;
        let in_list = |list: u32| {
            let starts = shards.clone().filter_map(|shard| {
                // Where a list begins it is counted who is in it.
                let start = sieve.region.entries as usize + shard * of_shard + list as usize;
                self.entries.get(start)
            });
            starts.map(|start| u64::from(start.count())).sum()
        };
        (0..=sieve.geometry.buckets).map(in_list).collect()
    }

    /// What is known of a source, and in which list; `None`: nothing.
    #[must_use]
    pub fn find(
        &self,
        sieve: &Sieve,
        hash_key: &HashKey,
        source: &Address,
    ) -> Option<(u32, Listed)> {
        listed(self, sieve, hash_key, &sieve.key(source))
    }
}
