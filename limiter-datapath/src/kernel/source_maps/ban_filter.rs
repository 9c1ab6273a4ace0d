//! The filter in front of the bans, mapped into the daemon's memory.

use aya::maps::{Array, MapData};
use limiter_common::{
    ban::{BanKey, Filter, HEADER_WORDS},
    sieve::Word,
};

use crate::kernel::{DatapathError, mapped_array::MappedArray};

/// The filter's map. No other process writes to it.
pub(super) struct BanFilter {
    words: MappedArray<Word>,
    filter: Filter,
}

impl BanFilter {
    /// Opens the map; a new map gets a secret.
    pub(super) fn new(map: Array<MapData, u64>) -> Result<Self, DatapathError> {
        let words = MappedArray::<Word>::new(map)?;
        let filter = match words.all() {
            [first, second, mask, ..] => {
                if mask.get() == 0 {
                    for factor in [first, second] {
                        factor.set(getrandom::u64().map_err(DatapathError::Random)? | 1);
                    }
                    // The mask comes last: once it is set, the datapath uses the filter.
                    let count = words.count().saturating_sub(HEADER_WORDS);
                    mask.set(count.saturating_sub(1).into());
                }
                Filter {
                    factors: [first.get(), second.get()],
                    mask: mask.get(),
                }
            }
            // The map is too small for a filter.
            _ => Filter::default(),
        };
        Ok(Self { words, filter })
    }

    pub(super) fn map(&self) -> &MapData {
        self.words.map()
    }

    /// Sets the bit of a prefix that is about to be banned.
    pub(super) fn add(&self, key: &BanKey) {
        let (word_index, bit) = self.filter.bit_of(key);
        if let Some(word) = self.words.get(word_index) {
            word.set(word.get() | bit);
        }
    }

    /// Sets the bits of these prefixes, and clears all others.
    pub(super) fn set_only<'k>(&self, keys: impl Iterator<Item = &'k BanKey>) {
        let mut bits = vec![0; self.words.count() as usize];
        for key in keys {
            let (word_index, bit) = self.filter.bit_of(key);
            if let Some(word) = bits.get_mut(word_index as usize) {
                *word |= bit;
            }
        }
        // A bit in both the old and the new filter stays set throughout.
        let words = self.words.all().iter().zip(bits);
        for (word, bits) in words.skip(HEADER_WORDS as usize) {
            word.set(bits);
        }
    }
}
