//! A hit: an address has arrived.

use super::{
    Lists, Memory, PERMA_BLOCK, Place, Shard, Sieve,
    lists::{LOST, NOBODY},
};
use crate::{address::Address, table::HashKey};

/// How often the lock of a shard is tried for. Who holds it has some hundred instructions to do.
const TRIES: u32 = 16;

/// The bits of what [`score`] returns that say in which list the address is.
pub const LIST: u32 = 0xff;

/// The bit of it that says that the arrival was not counted, since other CPUs held the shard.
pub const CONTENDED: u32 = 1 << 8;

/// Counts an arrival of an address, as [`Sieve::key`] has it; returns the list in which it is after
/// that, and whether that is all that was done: [`LIST`], [`CONTENDED`].
#[inline(always)]
pub fn score<M: Memory>(
    memory: &M,
    sieve: &Sieve,
    hash_key: &HashKey,
    key: &Address,
    now_ns: u64,
) -> u32 {
    let entry_list = sieve.geometry.buckets;
    let place = Place::new(&sieve.geometry, &sieve.region, hash_key, key);
    let Some(shard) = memory.shard(place.shard) else {
        return entry_list & LIST | CONTENDED;
    };
    for _ in 0..TRIES {
        let sequence = shard.sequence.get();
        if sequence & 1 == 0
            && memory.compare_and_swap(&shard.sequence, sequence, sequence.wrapping_add(1))
        {
            let list = hit(memory, sieve, shard, &place, key, now_ns);
            memory.store(&shard.sequence, sequence.wrapping_add(2));
            return match list {
                Some(list) => list & LIST,
                None => entry_list & LIST | CONTENDED,
            };
        }
    }
    let list = memory.look(place.entries, place.head(), key);
    // Who is in none of the lists that count has just been pushed out, or never came.
    let list = if list < entry_list { list } else { entry_list };
    list & LIST | CONTENDED
}

/// What Traffic Server does, where the lock of the shard is held. `None`: nothing, for want of
/// room in a chain.
///
/// An entry is moved once, from where it was to where it ends up: what is between leaves no trace.
#[inline(always)]
fn hit<M: Memory>(
    memory: &M,
    sieve: &Sieve,
    shard: &Shard,
    place: &Place,
    key: &Address,
    now_ns: u64,
) -> Option<u32> {
    let geometry = &sieve.geometry;
    let entry_list = geometry.buckets;
    let lists = Lists::new(memory, place.entries);
    let make_room = |list: u32| {
        if lists.entry(list)?.count() >= geometry.capacity(list) {
            memory.evict(place.entries, place.heads, list, geometry.free_list());
        }
        Some(())
    };
    let mut number = lists.find(place.head(), key);
    if number == LOST {
        return None;
    }
    // Where it goes, and whether it goes at all.
    let (mut list, mut moves) = (entry_list, true);
    if number == NOBODY {
        make_room(entry_list)?;
        number = lists.insert(geometry, shard, place, key)?;
        let entry = lists.entry(number)?;
        entry.set_count(1);
        entry.set_added_ns(now_ns);
    } else {
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
                        memory.relink(place.entries, tail, current);
                        list = below;
                    }
                }
            }
        }
    }
    let entry = lists.entry(number)?;
    if list != PERMA_BLOCK && list <= sieve.perma_threshold && entry.count() > sieve.perma_limit {
        // One that has just begun again may still be there.
        if entry.list() != PERMA_BLOCK {
            make_room(PERMA_BLOCK)?;
        }
        entry.set_added_ns(now_ns);
        list = PERMA_BLOCK;
        moves = true;
    }
    // The busiest of a flood is mostly where he is to go.
    let is_there = entry.list() == list && entry.previous(number) == list;
    if moves && !is_there {
        memory.relink(place.entries, number, list);
    }
    Some(list)
}
