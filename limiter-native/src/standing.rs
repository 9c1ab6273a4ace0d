//! The table of records of sources, over plain memory.

use std::{
    iter::repeat_with,
    sync::atomic::{
        AtomicU32, AtomicU64,
        Ordering::{Relaxed, SeqCst},
    },
};

use limiter_common::{
    ban::BanKey,
    policy::Features,
    sources::{self, StandingMemory},
    standing::{
        self, Event, FIRST_TRIES, FilterWord, FirstTries, Record, Settings, Shortage, ShortageWord,
        SourceId, Standing, StandingContext, Tick, filter,
    },
    table::{self, AtomicLine, Line, WAYS},
};
use limiter_policy::policy::CompiledPolicy;

use crate::standing_of::{PrefixStanding, standing_of};

/// The table of known sources, the memory of first tries and the shortage. Several threads may use
/// it at once.
#[derive(Debug, Default)]
pub struct MemoryStanding {
    known: Vec<AtomicLine>,
    first_tries: Vec<FirstTryLine>,
    filter: Vec<AtomicU64>,
    shortage: AtomicU64,
}

impl MemoryStanding {
    /// Makes an empty memory of the sizes in the settings.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        fn some<T: Default>(count: u32) -> Vec<T> {
            repeat_with(T::default).take(count as usize).collect()
        }
        Self {
            known: some(settings.lines),
            first_tries: some(settings.first_try_lines),
            filter: some(filter::words_in_map(settings.lines)),
            shortage: AtomicU64::default(),
        }
    }

    /// Records an event of a source at the time `now_ns`, in nanoseconds; returns the source's
    /// standing afterwards.
    pub fn happened(
        &self,
        features: &Features,
        source: SourceId,
        event: Event,
        now_ns: u64,
    ) -> Standing {
        sources::happened(self, features, source, event, now_ns)
    }

    /// The latest shortage.
    #[must_use]
    pub fn shortage(&self) -> Shortage {
        Shortage(self.shortage.load(SeqCst))
    }

    /// The standing of a prefix under a policy at the time `now_ns`.
    #[must_use]
    pub fn standing_of(
        &self,
        policy: &CompiledPolicy,
        prefix: &BanKey,
        now_ns: u64,
    ) -> PrefixStanding {
        let features = &policy.features;
        let at = StandingContext {
            settings: &features.standing,
            shortage: self.shortage(),
            now: Tick::of_ns(now_ns),
        };
        standing_of(policy, prefix, &at, |source| {
            let line = self
                .known
                .get(sources::known_index(features, source) as usize);
            line.map_or(Record::NONE, |line| standing::find(&line, source))
        })
    }

    /// The words of each line of known sources.
    pub fn known_lines(&self) -> impl Iterator<Item = [u64; 2 * WAYS]> {
        self.known.iter().map(AtomicLine::words)
    }

    /// The words of the filter of sources with a standing, as in a kernel's map.
    pub fn filter_words(&self) -> impl Iterator<Item = u64> {
        self.filter.iter().map(|word| word.load(SeqCst))
    }

    /// Every known source and its record, in no order. Includes expired records that are not yet
    /// replaced.
    pub fn records(&self) -> impl Iterator<Item = (SourceId, Record)> {
        self.known.iter().flat_map(known_in)
    }
}

/// The sources in a line of the table, and their records.
pub fn known_in(line: &AtomicLine) -> impl Iterator<Item = (SourceId, Record)> {
    (0..WAYS)
        .filter_map(move |way| table::entry(&line, way))
        .map(|(source, record)| (SourceId(source), Record(record)))
        .filter(|(_, record)| *record != Record::NONE)
}

impl StandingMemory for MemoryStanding {
    fn shortage_word(&self) -> Option<impl ShortageWord> {
        Some(MemoryShortage(&self.shortage))
    }

    fn known_line(&self, index: u32) -> Option<impl Line> {
        self.known.get(index as usize)
    }

    fn first_try_line(&self, index: u32) -> Option<impl FirstTries> {
        self.first_tries.get(index as usize)
    }

    fn filter_word(&self, index: u32) -> Option<impl FilterWord> {
        self.filter.get(index as usize).map(MemoryFilterWord)
    }
}

struct MemoryFilterWord<'a>(&'a AtomicU64);

impl FilterWord for MemoryFilterWord<'_> {
    fn get(&self) -> u64 {
        self.0.load(SeqCst)
    }

    fn set(&self, bits: u64) {
        self.0.fetch_or(bits, SeqCst);
    }
}

struct MemoryShortage<'a>(&'a AtomicU64);

impl ShortageWord for MemoryShortage<'_> {
    fn get(&self) -> u64 {
        self.0.load(SeqCst)
    }

    fn compare_and_swap(&self, seen: u64, new: u64) -> bool {
        let swapped = self.0.compare_exchange(seen, new, SeqCst, SeqCst);
        swapped.is_ok()
    }
}

/// First tries, and the cursor after them.
#[derive(Debug, Default)]
struct FirstTryLine([AtomicU32; FIRST_TRIES + 1]);

impl FirstTries for &FirstTryLine {
    fn get(&self, index: usize) -> u32 {
        self.0[index].load(Relaxed)
    }

    fn set(&self, index: usize, word: u32) {
        self.0[index].store(word, Relaxed);
    }
}

#[cfg(test)]
mod tests;
