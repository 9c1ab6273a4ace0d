//! What a sieve's memory is made of.
//!
//! All of it is words that are read and written one by one, since other CPUs may read them
//! meanwhile. Who writes holds the shard's lock, which is what orders their words; so the accesses
//! themselves need not.

use super::Word;
use crate::address::{Address, Family};

/// One address in a sieve; a cache line.
///
/// Entries go by their numbers in their shard. The first ones stand for no address: number `n` is
/// where list `n` begins and ends, so that lists are rings and no link leads nowhere. Links are
/// kept as distances, so that memory of zeroes is entries that lead to themselves: empty rings.
///
/// Words of 64 bits, also for what is smaller: BPF has atomics of no other size.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Entry {
    high: Word,
    low: Word,
    /// From the lowest bit on: 8 bits of the list, 8 of the family, 48 of the chain's number.
    tags: Word,
    added_ns: Word,
    count: Word,
    previous: Word,
    next: Word,
    /// The number of the next entry of the same chain; 0: it is the last.
    chain: Word,
}

const _: () = assert!(size_of::<Entry>() == 64, "a cache line");

const LIST_BITS: u32 = 8;
const FAMILY_BITS: u32 = 8;

impl Entry {
    /// Whose it is.
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

    /// Whether it is that address's.
    #[inline(always)]
    pub(super) fn is_of(&self, key: &Address) -> bool {
        self.high.get() == key.high && self.low.get() == key.low && self.has_family(key.family)
    }

    #[inline(always)]
    fn has_family(&self, family: Family) -> bool {
        self.tags.get() >> LIST_BITS & ((1 << FAMILY_BITS) - 1) == family as u64
    }

    /// Makes it another address's, which is in the chain of that number; it stays where it is.
    #[inline(always)]
    pub(super) fn give_to(&self, key: &Address, chain: u32) {
        self.high.set(key.high);
        self.low.set(key.low);
        let tags = u64::from(chain) << FAMILY_BITS | key.family as u64;
        self.tags.set(tags << LIST_BITS | u64::from(self.list()));
    }

    /// The number of its chain in the shard.
    #[inline(always)]
    pub(super) fn home(&self) -> u32 {
        number(self.tags.get() >> (LIST_BITS + FAMILY_BITS))
    }

    /// The list that it is in.
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

    /// How many hits it has, what was before it began again being an eighth; of where a list
    /// begins: how many entries are in it.
    #[must_use]
    #[inline(always)]
    pub fn count(&self) -> u32 {
        number(self.count.get())
    }

    #[inline(always)]
    pub(super) fn set_count(&self, count: u32) {
        self.count.set(count.into());
    }

    /// Since when it counts its age, in nanoseconds of the decision's clock: it was put in, began
    /// again, or came to list 0 then.
    #[must_use]
    #[inline(always)]
    pub fn added_ns(&self) -> u64 {
        self.added_ns.get()
    }

    #[inline(always)]
    pub(super) fn set_added_ns(&self, now_ns: u64) {
        self.added_ns.set(now_ns);
    }

    /// The number of the entry before it, its own number being `own`.
    #[must_use]
    #[inline(always)]
    pub fn previous(&self, own: u32) -> u32 {
        own.wrapping_add(number(self.previous.get()))
    }

    #[inline(always)]
    pub(super) fn set_previous(&self, own: u32, previous: u32) {
        self.previous.set(previous.wrapping_sub(own).into());
    }

    /// The number of the entry behind it, its own number being `own`.
    #[must_use]
    #[inline(always)]
    pub fn next(&self, own: u32) -> u32 {
        own.wrapping_add(number(self.next.get()))
    }

    #[inline(always)]
    pub(super) fn set_next(&self, own: u32, next: u32) {
        self.next.set(next.wrapping_sub(own).into());
    }

    /// What leads to the next entry of its chain.
    #[inline(always)]
    pub(super) const fn chain(&self) -> &Word {
        &self.chain
    }
}

/// A word that holds no more than 32 bits.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "that is what it holds")]
pub(super) const fn number(word: u64) -> u32 {
    word as u32
}

/// What there is once in each shard; a cache line, so that CPUs at different shards do not meet.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Shard {
    /// Grows by one when the lock is taken and when it is given back: odd while it is held.
    /// Who copies a shard and finds the same even number before and after has it as it was at one
    /// moment.
    pub sequence: Word,
    /// How many entries have ever been somebody's.
    used: Word,
}

const _: () = assert!(size_of::<Shard>() == 64, "a cache line");

impl Shard {
    /// How many entries have ever been somebody's; those behind them are zeroes.
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
