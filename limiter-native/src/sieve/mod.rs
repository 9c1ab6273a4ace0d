//! The memory of sieves in userspace: its own, or the kernel's mapped.

mod queries;
mod snapshot;

use std::sync::atomic::Ordering::SeqCst;

use limiter_common::sieve::{Entry, Memory, Shard, Word};

pub use self::snapshot::{ShardLists, SieveSnapshot};

/// The arrays that all sieves share.
#[derive(Clone, Copy, Debug)]
pub struct SieveMemory<'a> {
    /// The entries of all shards.
    pub entries: &'a [Entry],
    /// The first entry of each chain.
    pub heads: &'a [Word],
    /// The shards of all sieves.
    pub shards: &'a [Shard],
}

impl Memory for SieveMemory<'_> {
    fn entry(&self, index: u32) -> Option<&Entry> {
        self.entries.get(index as usize)
    }

    fn head(&self, index: u32) -> Option<&Word> {
        self.heads.get(index as usize)
    }

    fn shard(&self, index: u32) -> Option<&Shard> {
        self.shards.get(index as usize)
    }

    fn compare_and_swap(&self, word: &Word, seen: u64, new: u64) -> bool {
        word.atomic()
            .compare_exchange(seen, new, SeqCst, SeqCst)
            .is_ok()
    }

    fn store(&self, word: &Word, value: u64) {
        word.atomic().store(value, SeqCst);
    }
}

#[cfg(test)]
mod tests;
