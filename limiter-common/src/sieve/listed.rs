//! An entry in its saved and restored form.

use super::{ChainLocation, Geometry, Memory, Sieve, SieveLists, lists::SearchOutcome};
use crate::{address::Address, table::HashKey};

/// A source in a list of a sieve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedSource {
    /// The address, as returned by [`Sieve::key`].
    pub key: Address,
    /// Its number of hits.
    pub count: u32,
    /// The start of its age, in nanoseconds of the decision's clock.
    pub added_ns: u64,
}

/// Returns the list and the entry of an address from [`Sieve::key`], or `None` if it has none. Takes no
/// lock, so the result may be wrong while other CPUs use the sieve.
pub fn find_listed<M: Memory>(
    memory: &M,
    sieve: &Sieve,
    hash_key: &HashKey,
    key: &Address,
) -> Option<(u32, ListedSource)> {
    let location = ChainLocation::new(&sieve.geometry, &sieve.region, hash_key, key);
    let lists = SieveLists::new(memory, location.entries);
    let SearchOutcome::Entry(number) = lists.find(location.head(), key) else {
        return None;
    };
    let entry = lists.entry(number)?;
    let listed = ListedSource {
        key: *key,
        count: entry.count(),
        added_ns: entry.added_ns(),
    };
    Some((entry.list(), listed))
}

/// Puts an address at the front of a list; returns whether the list had room and the address was not in the
/// sieve. It must not run while other CPUs use the sieve.
pub fn put_back<M: Memory>(
    memory: &M,
    sieve: &Sieve,
    hash_key: &HashKey,
    list: u32,
    listed: &ListedSource,
) -> bool {
    let Geometry { list_count, .. } = sieve.geometry;
    let key = sieve.key(&listed.key);
    let location = ChainLocation::new(&sieve.geometry, &sieve.region, hash_key, &key);
    let lists = SieveLists::new(memory, location.entries);
    let put = || {
        let shard = memory.shard(location.shard)?;
        let is_full = lists.entry(list)?.count() >= sieve.geometry.capacity(list);
        if list > list_count
            || is_full
            || lists.find(location.head(), &key) != SearchOutcome::Nobody
        {
            return None;
        }
        let number = lists.insert(&sieve.geometry, shard, &location, &key)?;
        let entry = lists.entry(number)?;
        entry.set_count(listed.count);
        entry.set_added_ns(listed.added_ns);
        lists.relink(number, list);
        Some(())
    };
    put().is_some()
}
