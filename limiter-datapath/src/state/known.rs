//! Records of known sources in a form that outlives the kernel's clock.

use std::cmp::Reverse;

use limiter_common::{
    address::Family,
    standing::{Record, Settings, SourceId, Standing, StandingContext, Tick},
};
use serde::{Deserialize, Serialize};

/// The maximum number of saved sources. Higher ranks come first, and within a rank the latest
/// visitors.
pub(super) const MOST: usize = 1 << 24;

/// The saved records' clock at the time of saving.
const SAVED_AT: Tick = Tick(0);

/// The sources that were proven, familiar or trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedSources {
    /// The number of leading bits of an IPv6 address that were one source.
    pub ipv6_prefix: u32,
    /// The sources.
    pub sources: Vec<SavedSource>,
}

/// A source and its record, by a clock that is 0 at the time of saving.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedSource {
    source: u64,
    record: u64,
}

impl SavedSources {
    /// Saves the sources that are at least fresh at a moment.
    pub fn new(known: impl Iterator<Item = (SourceId, Record)>, at: &StandingContext<'_>) -> Self {
        let mut worthy: Vec<_> = known
            .filter(|(_, record)| record.standing(at) as u32 <= Standing::Fresh as u32)
            .collect();
        if worthy.len() > MOST {
            worthy.select_nth_unstable_by_key(MOST, |(_, record)| {
                (Reverse(record.rank(at)), at.now.since_kept(record.last()))
            });
            worthy.truncate(MOST);
        }
        let sources = worthy.into_iter();
        Self {
            ipv6_prefix: at.settings.ipv6_prefix,
            sources: sources
                .map(|(source, record)| SavedSource::new(source, record, at))
                .collect(),
        }
    }

    /// The records as they are at a moment `passed_ns` later, without expired records. Forgets
    /// sources with a prefix shorter than the present one.
    pub fn restore(
        &self,
        passed_ns: u64,
        at: &StandingContext<'_>,
    ) -> impl Iterator<Item = (SourceId, Record)> {
        let passed = u32::try_from(passed_ns >> Tick::BITS).unwrap_or(u32::MAX);
        // Longer times would wrap around to future ticks.
        let is_long = passed > Record::LONGEST_TRUST;
        let sources = self.sources.iter().filter(move |_| !is_long);
        sources.filter_map(move |saved| {
            let source = self.source_now(SourceId(saved.source), at.settings)?;
            let record = Record(saved.record).by_clock(Tick(passed), at.now);
            let is_known = record.standing(at) != Standing::Unknown;
            is_known.then_some((source, record))
        })
    }

    /// The source under other settings.
    fn source_now(&self, source: SourceId, settings: &Settings) -> Option<SourceId> {
        let address = source.address();
        let fits = address.family == Family::V4 || self.ipv6_prefix >= settings.ipv6_prefix;
        fits.then(|| SourceId::new(settings, &address))
    }
}

impl SavedSource {
    /// Saves a source as fresh if it ranks as fresh only while the shortage lasts. So no source
    /// gains standing by a restart.
    const fn new(source: SourceId, record: Record, at: &StandingContext<'_>) -> Self {
        let is_fresh = matches!(record.standing(at), Standing::Fresh);
        let (last, since) = (Tick(record.last()), Tick(record.since()));
        let record = Record::new(record.kind(), is_fresh, record.visits(), last, since);
        Self {
            source: source.0,
            record: record.by_clock(at.now, SAVED_AT).0,
        }
    }
}

#[cfg(test)]
mod tests;
