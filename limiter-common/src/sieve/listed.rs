//! An entry as it is kept elsewhere, and put back.

use super::{
    Geometry, Lists, Memory, Place, Sieve,
    lists::{LOST, NOBODY},
};
use crate::{address::Address, table::HashKey};

/// An address in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The address, as [`Sieve::key`] has it.
    pub key: Address,
    /// How many hits it has.
    pub count: u32,
    /// Since when it counts its age, in nanoseconds of the decision's clock.
    pub added_ns: u64,
}

/// What is known of an address, as [`Sieve::key`] has it, and in which list; `None`: nothing. Takes
/// no lock: while others are at the sieve it may be wrong.
pub fn listed<M: Memory>(
    memory: &M,
    sieve: &Sieve,
    hash_key: &HashKey,
    key: &Address,
) -> Option<(u32, Listed)> {
    let place = Place::new(&sieve.geometry, &sieve.region, hash_key, key);
    let lists = Lists::new(memory, place.entries);
    let number = lists.find(place.head(), key);
    if number == NOBODY || number == LOST {
        return None;
    }
    let entry = lists.entry(number)?;
    let listed = Listed {
        key: *key,
        count: entry.count(),
        added_ns: entry.added_ns(),
    };
    Some((entry.list(), listed))
}

/// Puts an address in front of a list; returns whether that had room for it, and nobody knew it
/// yet. Not while others are at the sieve.
pub fn put_back<M: Memory>(
    memory: &M,
    sieve: &Sieve,
    hash_key: &HashKey,
    list: u32,
    listed: &Listed,
) -> bool {
    let Geometry { buckets, .. } = sieve.geometry;
    let key = sieve.key(&listed.key);
    let place = Place::new(&sieve.geometry, &sieve.region, hash_key, &key);
    let lists = Lists::new(memory, place.entries);
    let put = || {
        let shard = memory.shard(place.shard)?;
        let is_full = lists.entry(list)?.count() >= sieve.geometry.capacity(list);
        if list > buckets || is_full || lists.find(place.head(), &key) != NOBODY {
            return None;
        }
        let number = lists.insert(&sieve.geometry, shard, &place, &key)?;
        let entry = lists.entry(number)?;
        entry.set_count(listed.count);
        entry.set_added_ns(listed.added_ns);
        lists.relink(number, list);
        Some(())
    };
    put().is_some()
}
