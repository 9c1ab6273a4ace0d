//! Cached names over plain memory.

use std::{cell::OnceCell, iter::repeat_with, sync::atomic::Ordering::SeqCst};

use limiter_common::{
    cached_names::{NameLine, NameLines},
    policy::Features,
    sieve::Word,
};

/// The cached names. The first policy that asks for them sets the number of lines.
#[derive(Debug, Default)]
pub struct MemoryNames(OnceCell<Vec<NameLine>>);

impl MemoryNames {
    /// The lines, for a policy with these features.
    pub(super) fn lines(&self, features: &Features) -> MemoryLines<'_> {
        let make = || {
            let count = usize::try_from(features.name_lines).unwrap_or_default();
            repeat_with(NameLine::default).take(count).collect()
        };
        MemoryLines(self.0.get_or_init(make))
    }
}

pub(super) struct MemoryLines<'n>(&'n [NameLine]);

impl NameLines for MemoryLines<'_> {
    fn count(&self) -> u64 {
        self.0.len() as u64
    }

    fn line(&self, index: u32) -> Option<&NameLine> {
        self.0.get(index as usize)
    }

    fn swap(&self, word: &Word, seen: u64, new: u64) {
        let _ = word.atomic().compare_exchange(seen, new, SeqCst, SeqCst);
    }
}
