//! The filter of sources with a standing, of which userspace clears the bits of forgotten sources.

use std::sync::{Mutex, PoisonError, atomic::Ordering::SeqCst};

use aya::maps::{Array, MapData};
use limiter_common::{
    policy::Features,
    sieve::Word,
    standing::{
        FilterPlace, SourceId,
        filter::{HALVES, HEADER_WORDS},
    },
};

use crate::kernel::{
    DatapathError, grace::wait_for_running_programs, map::error, mapped_array::MappedArray,
};

pub(in crate::kernel) const STANDING_FILTER: &str = "STANDING_FILTER";

/// The filter's map.
pub(super) struct StandingFilter {
    words: MappedArray<Word>,
    /// Held while the idle half is filled.
    filling: Mutex<()>,
}

impl StandingFilter {
    pub(super) fn new(map: Array<MapData, u64>) -> Result<Self, DatapathError> {
        Ok(Self {
            words: MappedArray::new(map)?,
            filling: Mutex::default(),
        })
    }

    pub(super) fn map(&self) -> &MapData {
        self.words.map()
    }

    /// Whether the half in force has the bits of the source with this hash beside a table of so many lines, as programs
    /// ask it.
    #[cfg(feature = "testing")]
    pub(super) fn has(&self, hash: u64, lines: u32) -> bool {
        let word = |index: u32| self.words.get(index).map_or(0, Word::get);
        let place = FilterPlace::new(hash, lines);
        let half_in_force = u32::from(word(0) & 1 == 1);
        word(place.index(half_in_force)) & place.bits == place.bits
    }

    /// Writes all words to a map that no program uses yet.
    pub(super) fn write(&self, words: &[u64]) -> Result<(), DatapathError> {
        self.words.write(words).map_err(error(STANDING_FILTER))
    }

    /// Clears the bits of all sources but these, by the steps that [`limiter_common::standing::filter`] lists.
    /// `sources` reads the table, once that is its turn.
    ///
    /// # Errors
    ///
    /// The kernel does not wait for running programs; the filter then answers as before.
    pub(super) fn keep_only(
        &self,
        sources: impl Iterator<Item = SourceId>,
        features: &Features,
    ) -> Result<(), DatapathError> {
        // A panic leaves the idle half unfinished, which the next call clears.
        let _filling = self.filling.lock().unwrap_or_else(PoisonError::into_inner);
        let words = self.words.all();
        let (Some(header), Some(halves)) = (words.first(), words.get(HEADER_WORDS as usize..))
        else {
            return Ok(());
        };
        let half_in_force = u32::from(header.get() & 1 == 1);
        let idle = 1 - half_in_force;
        wait_for_running_programs()?;
        let words_in_half = halves.len() / HALVES as usize;
        for word in halves
            .iter()
            .skip(idle as usize * words_in_half)
            .take(words_in_half)
        {
            word.atomic().store(0, SeqCst);
        }
        wait_for_running_programs()?;
        for source in sources {
            let hash = features.hash_key.word_hash(source.0);
            let place = FilterPlace::new(hash, features.standing.lines);
            if let Some(word) = words.get(place.index(idle) as usize) {
                word.atomic().fetch_or(place.bits, SeqCst);
            }
        }
        header.atomic().store(idle.into(), SeqCst);
        Ok(())
    }
}
