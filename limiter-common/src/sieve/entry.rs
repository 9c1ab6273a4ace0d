//! The parts of a sieve's memory.
//!
//! All of it is words that are read and written one by one, since other CPUs may read them meanwhile. A
//! writer holds the shard's lock, which orders its accesses; so the words need no order of their own.

use super::Word;
use crate::address::{Address, Family};

/// One address in a sieve; a cache line.
///
/// Entries have numbers in their shard. The first ones stand for no address: entry `n` is the head of list
/// `n`, at both its ends, so lists are rings and every link leads to an entry. Links are distances, so in
/// zeroed memory each entry links to itself: empty rings.
///
/// All words have 64 bits, even for smaller values: BPF has no atomics of other sizes.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Entry {
    high: Word,
    low: Word,
    /// From the lowest bit on: 8 bits for the list, 8 for the family, 48 for the chain's number.
    tags: Word,
    added_ns: Word,
    count: Word,
    previous: Word,
    next: Word,
    /// The number of the next entry of the same chain; 0: this is the last.
    chain: Word,
}

const _: () = assert!(size_of::<Entry>() == 64, "a cache line");

const LIST_BITS: u32 = 8;
const FAMILY_BITS: u32 = 8;

impl Entry {
    /// The entry's address.
    #[must_use]
    #[inline(always)]
    pub fn key(&self) -> Address {
        Address {
            family: if self.has_family(Family::V6) {
                Family::V6
            } else {
                Family::V4
            },
            high: self.high.get(),
            low: self.low.get(),
        }
    }

    #[inline(always)]
    pub(super) fn is_of(&self, key: &Address) -> bool {
        self.high.get() == key.high && self.low.get() == key.low && self.has_family(key.family)
    }

    #[inline(always)]
    fn has_family(&self, family: Family) -> bool {
        self.tags.get() >> LIST_BITS & ((1 << FAMILY_BITS) - 1) == family as u64
    }

    /// Gives the entry to another address, in the chain of that number; it stays in its list.
    #[inline(always)]
    pub(super) fn give_to(&self, key: &Address, chain: u32) {
        self.high.set(key.high);
        self.low.set(key.low);
        let tags = u64::from(chain) << FAMILY_BITS | key.family as u64;
        self.tags.set(tags << LIST_BITS | u64::from(self.list()));
    }

    /// The number of the entry's chain in the shard.
    #[inline(always)]
    pub(super) fn home(&self) -> u32 {
        number(self.tags.get() >> (LIST_BITS + FAMILY_BITS))
    }

    /// The entry's list.
    #[must_use]
    #[inline(always)]
    pub fn list(&self) -> u32 {
        number(self.tags.get() & ((1 << LIST_BITS) - 1))
    }

    #[inline(always)]
    pub(super) fn set_list(&self, list: u32) {
        let others = self.tags.get() >> LIST_BITS << LIST_BITS;
        self.tags.set(others | u64::from(list));
    }

    /// The entry's hits; hits before it last began again count an eighth. For a list's head: the number of
    /// entries in the list.
    #[must_use]
    #[inline(always)]
    pub fn count(&self) -> u32 {
        number(self.count.get())
    }

    #[inline(always)]
    pub(super) fn set_count(&self, count: u32) {
        self.count.set(count.into());
    }

    /// The start of the entry's age, in nanoseconds of the decision's clock: the time at which it was
    /// inserted, began again, or came to list 0.
    #[must_use]
    #[inline(always)]
    pub fn added_ns(&self) -> u64 {
        self.added_ns.get()
    }

    #[inline(always)]
    pub(super) fn set_added_ns(&self, now_ns: u64) {
        self.added_ns.set(now_ns);
    }

    /// The number of the previous entry; `own` is this entry's number.
    #[must_use]
    #[inline(always)]
    pub fn previous(&self, own: u32) -> u32 {
        own.wrapping_add(number(self.previous.get()))
    }

    #[inline(always)]
    pub(super) fn set_previous(&self, own: u32, previous: u32) {
        self.previous.set(previous.wrapping_sub(own).into());
    }

    /// The number of the next entry; `own` is this entry's number.
    #[must_use]
    #[inline(always)]
    pub fn next(&self, own: u32) -> u32 {
        own.wrapping_add(number(self.next.get()))
    }

    #[inline(always)]
    pub(super) fn set_next(&self, own: u32, next: u32) {
        self.next.set(next.wrapping_sub(own).into());
    }

    #[inline(always)]
    pub(super) const fn chain(&self) -> &Word {
        &self.chain
    }
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "that is what it holds")]
pub(super) const fn number(word: u64) -> u32 {
    word as u32
}

/// The head of a shard; a cache line, so that CPUs at different shards do not contend.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Shard {
    /// Grows by one when the lock is taken and when it is released: odd while it is held. A reader
    /// that copies a shard and finds the same even number before and after has a consistent
    /// snapshot.
    pub sequence: Word,
    /// The number of entries ever given to an address.
    used: Word,
}

const _: () = assert!(size_of::<Shard>() == 64, "a cache line");

impl Shard {
    /// The number of entries ever given to an address; all later entries are zero.
    #[must_use]
    #[inline(always)]
    pub fn used(&self) -> u32 {
        number(self.used.get())
    }

    #[inline(always)]
    pub(super) fn set_used(&self, used: u32) {
        self.used.set(used.into());
    }
}
