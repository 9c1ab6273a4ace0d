//! A hit: an address has arrived.

use super::{ChainLocation, Memory, PERMA_BLOCK, Shard, Sieve, SieveLists, lists::SearchOutcome};
use crate::{address::Address, table::HashKey};

/// The number of attempts to take a shard's lock. Its holder runs some hundred instructions.
const TRIES: u32 = 16;

/// The bits of [`score`]'s result with the list of the address.
pub const LIST: u32 = 0xff;

/// The bit of [`score`]'s result for an arrival that was not counted, since other CPUs held the shard.
pub const CONTENDED: u32 = 1 << 8;

/// Counts an arrival of an address from [`Sieve::key`]. Returns the address's list afterwards ([`LIST`]),
/// and whether the arrival could not be counted ([`CONTENDED`]).
#[inline(always)]
pub fn score<M: Memory>(
    memory: &M,
    sieve: &Sieve,
    hash_key: &HashKey,
    key: &Address,
    now_ns: u64,
) -> u32 {
    let entry_list = sieve.geometry.list_count;
    let location = ChainLocation::new(&sieve.geometry, &sieve.region, hash_key, key);
    let Some(shard) = memory.shard(location.shard) else {
        return entry_list & LIST | CONTENDED;
    };
    for _ in 0..TRIES {
        let sequence = shard.sequence.get();
        if sequence & 1 == 0
            && memory.compare_and_swap(&shard.sequence, sequence, sequence.wrapping_add(1))
        {
            let list = hit(memory, sieve, shard, &location, key, now_ns);
            memory.store(&shard.sequence, sequence.wrapping_add(2));
            return match list {
                Some(list) => list & LIST,
                None => entry_list & LIST | CONTENDED,
            };
        }
    }
    let list = match memory.find_list(location.entries, location.head(), key) {
        Some(list) if list < entry_list => list,
        // An address in no list has just been pushed out, or never came.
        _ => entry_list,
    };
    list & LIST | CONTENDED
}

/// Performs Traffic Server's steps for a hit, with the shard's lock held; returns the list. `None`: a chain
/// has no room, and nothing was done.
///
/// An entry moves once, directly to its final list: steps in between leave no trace.
#[inline(always)]
fn hit<M: Memory>(
    memory: &M,
    sieve: &Sieve,
    shard: &Shard,
    location: &ChainLocation,
    key: &Address,
    now_ns: u64,
) -> Option<u32> {
    let geometry = &sieve.geometry;
    let entry_list = geometry.list_count;
    let lists = SieveLists::new(memory, location.entries);
    let make_room = |list: u32| {
        if lists.entry(list)?.count() >= geometry.capacity(list) {
            memory.evict(location.entries, location.heads, list, geometry.free_list());
        }
        Some(())
    };
    let found = match lists.find(location.head(), key) {
        SearchOutcome::Entry(number) => Some(number),
        SearchOutcome::Nobody => None,
        SearchOutcome::Lost => return None,
    };
    // The entry's new list, and whether it moves at all.
    let (mut list, mut moves) = (entry_list, true);
    let number = if let Some(number) = found {
        let entry = lists.entry(number)?;
        let current = entry.list();
        let count = entry.count();
        let max_age_ns = sieve.max_age_ns(current);
        if max_age_ns > 0 && now_ns.saturating_sub(entry.added_ns()) > max_age_ns {
            entry.set_count(count >> 3);
            entry.set_added_ns(now_ns);
            if current != entry_list {
                make_room(entry_list)?;
            }
        } else {
            let count = count.saturating_add(1);
            entry.set_count(count);
            list = current;
            if current >= 2 {
                let below = current.wrapping_sub(1);
                let head = lists.entry(below)?;
                if head.count() < geometry.capacity(below) {
                    list = below;
                } else {
                    let tail = head.previous(below);
                    moves = lists.entry(tail)?.count() <= count;
                    if moves {
                        memory.relink(location.entries, tail, current);
                        list = below;
                    }
                }
            }
        }
        number
    } else {
        make_room(entry_list)?;
        let number = lists.insert(geometry, shard, location, key)?;
        let entry = lists.entry(number)?;
        entry.set_count(1);
        entry.set_added_ns(now_ns);
        number
    };
    let entry = lists.entry(number)?;
    if list != PERMA_BLOCK && list <= sieve.perma_threshold && entry.count() > sieve.perma_limit {
        // An entry that has just begun again may still be there.
        if entry.list() != PERMA_BLOCK {
            make_room(PERMA_BLOCK)?;
        }
        entry.set_added_ns(now_ns);
        list = PERMA_BLOCK;
        moves = true;
    }
    // In a flood, the busiest entry is mostly there already.
    let is_there = entry.list() == list && entry.previous(number) == list;
    if moves && !is_there {
        memory.relink(location.entries, number, list);
    }
    Some(list)
}
