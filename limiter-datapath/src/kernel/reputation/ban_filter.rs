//! The filter in front of the bans, mapped into the daemon's memory.

use aya::maps::{Array, MapData};
use limiter_common::{
    ban::{BanKey, Filter, HEADER_WORDS},
    sieve::Word,
};

use crate::kernel::{DatapathError, mapped::Mapped};

/// The filter's map. Nobody else writes to it.
pub(super) struct BanFilter {
    words: Mapped<Word>,
    filter: Filter,
}

impl BanFilter {
    /// Of its map; one that was just made gets a secret.
    pub(super) fn new(map: Array<MapData, u64>) -> Result<Self, DatapathError> {
        let words = Mapped::<Word>::new(map)?;
        let filter = match words.all() {
            [first, second, mask, ..] => {
                if mask.get() == 0 {
                    for factor in [first, second] {
                        factor.set(getrandom::u64().map_err(DatapathError::Random)? | 1);
                    }
                    // Last: from then on the datapath asks the filter.
                    let count = words.count().saturating_sub(HEADER_WORDS);
                    mask.set(count.saturating_sub(1).into());
                }
                Filter {
                    factors: [first.get(), second.get()],
                    mask: mask.get(),
                }
            }
            // Too small a map is none.
            _ => Filter::default(),
        };
        Ok(Self { words, filter })
    }

    /// The map.
    pub(super) fn map(&self) -> &MapData {
        self.words.map()
    }

    /// A ban of that prefix will be there.
    pub(super) fn add(&self, key: &BanKey) {
        let (place, bit) = self.filter.place(key);
        if let Some(word) = self.words.get(place) {
            word.set(word.get() | bit);
        }
    }

    /// There are bans of these prefixes, and no others.
    pub(super) fn set_only<'k>(&self, keys: impl Iterator<Item = &'k BanKey>) {
        let mut bits = vec![0; self.words.count() as usize];
        for key in keys {
            let (place, bit) = self.filter.place(key);
            if let Some(word) = bits.get_mut(place as usize) {
                *word |= bit;
            }
        }
        // What is in both stays there all the time.
        let words = self.words.all().iter().zip(bits);
        for (word, bits) in words.skip(HEADER_WORDS as usize) {
            word.set(bits);
        }
    }
}
