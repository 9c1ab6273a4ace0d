//! What a sieve's memory is made of.
//!
//! All of it is words that are read and written one by one, since other CPUs may read them
//! meanwhile. Who writes holds the shard's lock, which is what orders their words; so the accesses
//! themselves need not.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::address::{Address, Family};

/// One address in a sieve; a cache line.
///
/// Entries go by their numbers in their shard. The first ones stand for no address: number `n` is
/// where list `n` begins and ends, so that lists are rings and no link leads nowhere. Links are
/// kept as distances, so that memory of zeroes is entries that lead to themselves: empty rings.
///
/// Words of 64 bits, also for what is smaller: BPF has atomic types of no other size.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Entry {
    high: AtomicU64,
    low: AtomicU64,
    /// From the lowest bit on: 8 bits of the list, 8 of the family, 48 of the chain's number.
    tags: AtomicU64,
    added_ns: AtomicU64,
    count: AtomicU64,
    previous: AtomicU64,
    next: AtomicU64,
    /// The number of the next entry of the same chain; 0: it is the last.
    chain: AtomicU64,
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
            high: self.high.load(Relaxed),
            low: self.low.load(Relaxed),
        }
    }

    /// Whether it is that address's.
    #[inline(always)]
    pub(super) fn is_of(&self, key: &Address) -> bool {
        self.high.load(Relaxed) == key.high
            && self.low.load(Relaxed) == key.low
            && self.has_family(key.family)
    }

    #[inline(always)]
    fn has_family(&self, family: Family) -> bool {
        self.tags.load(Relaxed) >> LIST_BITS & ((1 << FAMILY_BITS) - 1) == family as u64
    }

    /// Makes it another address's, which is in the chain of that number; it stays where it is.
    #[inline(always)]
    pub(super) fn give_to(&self, key: &Address, chain: u32) {
        self.high.store(key.high, Relaxed);
        self.low.store(key.low, Relaxed);
        let tags = u64::from(chain) << FAMILY_BITS | key.family as u64;
        self.tags
            .store(tags << LIST_BITS | u64::from(self.list()), Relaxed);
    }

    /// The number of its chain in the shard.
    #[inline(always)]
    pub(super) fn home(&self) -> u32 {
        number(self.tags.load(Relaxed) >> (LIST_BITS + FAMILY_BITS))
    }

    /// The list that it is in.
    #[must_use]
    #[inline(always)]
    pub fn list(&self) -> u32 {
        number(self.tags.load(Relaxed) & ((1 << LIST_BITS) - 1))
    }

    #[inline(always)]
    pub(super) fn set_list(&self, list: u32) {
        let others = self.tags.load(Relaxed) >> LIST_BITS << LIST_BITS;
        self.tags.store(others | u64::from(list), Relaxed);
    }

    /// How many hits it has, what was before it began again being an eighth; of where a list
    /// begins: how many entries are in it.
    #[must_use]
    #[inline(always)]
    pub fn count(&self) -> u32 {
        number(self.count.load(Relaxed))
    }

    #[inline(always)]
    pub(super) fn set_count(&self, count: u32) {
        self.count.store(count.into(), Relaxed);
    }

    /// Since when it counts its age, in nanoseconds of the decision's clock: it was put in, began
    /// again, or came to list 0 then.
    #[must_use]
    #[inline(always)]
    pub fn added_ns(&self) -> u64 {
        self.added_ns.load(Relaxed)
    }

    #[inline(always)]
    pub(super) fn set_added_ns(&self, now_ns: u64) {
        self.added_ns.store(now_ns, Relaxed);
    }

    /// The number of the entry before it, its own number being `own`.
    #[must_use]
    #[inline(always)]
    pub fn previous(&self, own: u32) -> u32 {
        own.wrapping_add(number(self.previous.load(Relaxed)))
    }

    #[inline(always)]
    pub(super) fn set_previous(&self, own: u32, previous: u32) {
        self.previous
            .store(previous.wrapping_sub(own).into(), Relaxed);
    }

    /// The number of the entry behind it, its own number being `own`.
    #[must_use]
    #[inline(always)]
    pub fn next(&self, own: u32) -> u32 {
        own.wrapping_add(number(self.next.load(Relaxed)))
    }

    #[inline(always)]
    pub(super) fn set_next(&self, own: u32, next: u32) {
        self.next.store(next.wrapping_sub(own).into(), Relaxed);
    }

    /// What leads to the next entry of its chain.
    #[inline(always)]
    pub(super) const fn chain(&self) -> &AtomicU64 {
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
    pub sequence: AtomicU64,
    /// How many entries have ever been somebody's.
    used: AtomicU64,
}

const _: () = assert!(size_of::<Shard>() == 64, "a cache line");

impl Shard {
    /// How many entries have ever been somebody's; those behind them are zeroes.
    #[must_use]
    #[inline(always)]
    pub fn used(&self) -> u32 {
        number(self.used.load(Relaxed))
    }

    #[inline(always)]
    pub(super) fn set_used(&self, used: u32) {
        self.used.store(used.into(), Relaxed);
    }
}
