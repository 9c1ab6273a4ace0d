//! The lists of one shard, and the chains by which addresses are found.

use super::{ChainLocation, Entry, Geometry, Shard, Word, entry};
use crate::address::Address;

/// The maximum number of entries in a chain. There are about as many chains as entries, and an attacker without
/// the key cannot choose an address's chain: no chain ever gets half as long.
const MOST_IN_CHAIN: u32 = 32;

/// The result of a search in a chain.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchOutcome {
    /// The number of the address's entry.
    Entry(u32),
    /// The address is not there, and the chain has room.
    Nobody,
    /// The address is not there, and the chain is full or broken.
    Lost,
}

/// Stands in for the number of a chain's next entry at its end. It is the number of list 0's head.
const NONE: u32 = 0;

/// The memory of all sieves.
pub trait Memory {
    /// The entry at an index among the entries of all shards.
    fn entry(&self, index: u32) -> Option<&Entry>;
    /// The number of a chain's first entry, by the chain's index among the chains of all shards; 0: the
    /// chain is empty.
    fn head(&self, index: u32) -> Option<&Word>;
    /// The shard at an index.
    fn shard(&self, index: u32) -> Option<&Shard>;

    /// Sets a word to `new` if it still is `seen`, in one atomic step, before all later accesses.
    fn compare_and_swap(&self, word: &Word, seen: u64, new: u64) -> bool;
    /// Sets a word after all earlier accesses.
    fn store(&self, word: &Word, value: u64);

    /// Calls [`SieveLists::relink`] in the shard with `entries` as its first entry. In the kernel program,
    /// this and the next two are separate functions, which the verifier walks once.
    #[inline(always)]
    fn relink(&self, entries: u32, number: u32, list: u32)
    where
        Self: Sized,
    {
        SieveLists::new(self, entries).relink(number, list);
    }

    /// Calls [`SieveLists::evict`] in the shard with this first entry and first chain head.
    #[inline(always)]
    fn evict(&self, entries: u32, heads: u32, list: u32, free_list: u32)
    where
        Self: Sized,
    {
        SieveLists::new(self, entries).evict(heads, list, free_list);
    }

    /// Calls [`SieveLists::find_list`] in the shard with `entries` as its first entry, in the chain `head`.
    #[inline(always)]
    fn find_list(&self, entries: u32, head: u32, key: &Address) -> Option<u32>
    where
        Self: Sized,
    {
        SieveLists::new(self, entries).find_list(head, key)
    }
}

/// The lists of one shard.
pub struct SieveLists<'m, M> {
    memory: &'m M,
    /// The index of the shard's first entry.
    entries: u32,
}

impl<'m, M: Memory> SieveLists<'m, M> {
    /// The lists of the shard with the index `entries` as its first entry.
    #[inline(always)]
    pub const fn new(memory: &'m M, entries: u32) -> Self {
        Self { memory, entries }
    }

    /// Returns the entry of that number; for a list's number, the list's head.
    #[inline(always)]
    pub(super) fn entry(&self, number: u32) -> Option<&'m Entry> {
        self.memory.entry(self.entries.wrapping_add(number))
    }

    #[inline(always)]
    pub(super) fn find(&self, head: u32, key: &Address) -> SearchOutcome {
        let Some(head) = self.memory.head(head) else {
            return SearchOutcome::Lost;
        };
        let mut number = entry::number(head.get());
        for _ in 0..MOST_IN_CHAIN {
            if number == NONE {
                return SearchOutcome::Nobody;
            }
            let Some(entry) = self.entry(number) else {
                return SearchOutcome::Lost;
            };
            if entry.is_of(key) {
                return SearchOutcome::Entry(number);
            }
            number = entry::number(entry.chain().get());
        }
        SearchOutcome::Lost
    }

    /// Returns the list of an address in the chain `head`, or `None` if it is in no list. Without the
    /// shard's lock the result may be wrong.
    #[must_use]
    #[inline(always)]
    pub fn find_list(&self, head: u32, key: &Address) -> Option<u32> {
        match self.find(head, key) {
            SearchOutcome::Entry(number) => Some(self.entry(number)?.list()),
            SearchOutcome::Nobody | SearchOutcome::Lost => None,
        }
    }

    /// Takes a free entry for an address without one and puts it into its chain; the entry stays in the
    /// free list.
    #[inline(always)]
    pub(super) fn insert(
        &self,
        geometry: &Geometry,
        shard: &Shard,
        location: &ChainLocation,
        key: &Address,
    ) -> Option<u32> {
        let free_list = geometry.free_list();
        let free = self.entry(free_list)?;
        let head = self.memory.head(location.head())?;
        let mut number = free.previous(free_list);
        if number == free_list {
            // None was freed, so take an unused entry.
            let used = shard.used();
            number = geometry.first_entry().wrapping_add(used);
            if number >= geometry.entries() {
                return None;
            }
            shard.set_used(used.wrapping_add(1));
            self.entry(number)?.set_list(free_list);
            free.set_count(free.count().wrapping_add(1));
        }
        let entry = self.entry(number)?;
        entry.give_to(key, location.chain);
        entry.chain().set(head.get());
        head.set(number.into());
        Some(number)
    }

    /// Moves an entry from its list to the front of another.
    #[inline(always)]
    pub fn relink(&self, number: u32, list: u32) {
        // Ignore failure: then the memory is not a sieve's.
        let _ = self.try_relink(number, list);
    }

    #[inline(always)]
    fn try_relink(&self, number: u32, list: u32) -> Option<()> {
        let entry = self.entry(number)?;
        let (previous, next) = (entry.previous(number), entry.next(number));
        self.entry(previous)?.set_next(previous, next);
        self.entry(next)?.set_previous(next, previous);
        let left = self.entry(entry.list())?;
        left.set_count(left.count().wrapping_sub(1));

        let head = self.entry(list)?;
        let first = head.next(list);
        self.entry(first)?.set_previous(first, number);
        head.set_next(list, number);
        entry.set_previous(number, list);
        entry.set_next(number, first);
        head.set_count(head.count().wrapping_add(1));
        entry.set_list(list);
        Some(())
    }

    /// Evicts the last entry of a list, if there is one.
    #[inline(always)]
    pub fn evict(&self, heads: u32, list: u32, free_list: u32) {
        let _ = self.try_evict(heads, list, free_list);
    }

    #[inline(always)]
    fn try_evict(&self, heads: u32, list: u32, free_list: u32) -> Option<()> {
        let tail = self.entry(list)?.previous(list);
        if tail == list {
            return None;
        }
        let entry = self.entry(tail)?;
        let behind = entry.chain().get();
        let mut link = self.memory.head(heads.wrapping_add(entry.home()))?;
        for _ in 0..MOST_IN_CHAIN {
            let number = entry::number(link.get());
            if number == tail {
                link.set(behind);
                break;
            }
            link = self.entry(number)?.chain();
        }
        self.memory.relink(self.entries, tail, free_list);
        Some(())
    }
}
