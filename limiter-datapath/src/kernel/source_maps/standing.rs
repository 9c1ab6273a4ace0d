//! The maps of the records of sources, and of first tries.
//!
//! Packets and handshakes change them; userspace only reads, and orders changes (`orders.rs`).

mod filter;
mod migration;
mod orders;
#[cfg(feature = "testing")]
mod testing;

use std::ops::Range;

use aya::maps::{Array, IterableMap as _, Map, MapData};
use limiter_common::{
    policy::Features,
    sources,
    standing::{Record, Shortage, SourceId, StandingContext, Tick, filter::words_in_map},
    table::{AtomicLine, EMPTY, LOCKED, Line as _, WAYS},
};
use serde::{Deserialize, Serialize};

pub(in crate::kernel) use self::filter::STANDING_FILTER;
use self::{filter::StandingFilter, orders::Orders};
use crate::kernel::{DatapathError, map::error, mapped_array::MappedArray};
use limiter_native::known_in;

pub(in crate::kernel) const KNOWN: &str = "KNOWN";
pub(in crate::kernel) const FIRST_TRIES: &str = "FIRST_TRIES";
pub(in crate::kernel) const SHORTAGE: &str = "SHORTAGE";

/// The sizes of the maps, and the prefix length of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandingSizes {
    /// The number of lines of the table of known sources; 0: the policy uses no standing.
    lines: u32,
    /// The number of lines of the memory of first tries.
    first_try_lines: u32,
    /// The length of the IPv6 prefix that counts as one source.
    ipv6_prefix: u32,
}

impl StandingSizes {
    /// The sizes for a policy with these features.
    #[must_use]
    pub const fn of(features: &Features) -> Self {
        let standing = &features.standing;
        Self {
            lines: standing.lines,
            first_try_lines: standing.first_try_lines,
            ipv6_prefix: standing.ipv6_prefix,
        }
    }
}

/// How long an expired record stays in the filter, in ticks: a program that began earlier may still count it.
const MARGIN: u32 = Tick::MINUTE;

/// Reads the maps of standings.
pub struct StandingMaps {
    /// Mapped read-only.
    known: MappedArray<AtomicLine>,
    first_tries: Array<MapData, Line>,
    filter: StandingFilter,
    shortage: Array<MapData, u64>,
    sizes: StandingSizes,
    orders: Orders,
}

type Line = [u64; 8];

impl StandingMaps {
    pub(super) fn new(
        mut open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
        sizes: StandingSizes,
    ) -> Result<Self, DatapathError> {
        Ok(Self {
            known: MappedArray::read_only(open(KNOWN)?.try_into().map_err(error(KNOWN))?)?,
            first_tries: open(FIRST_TRIES)?.try_into().map_err(error(FIRST_TRIES))?,
            filter: StandingFilter::new(
                open(STANDING_FILTER)?
                    .try_into()
                    .map_err(error(STANDING_FILTER))?,
            )?,
            shortage: open(SHORTAGE)?.try_into().map_err(error(SHORTAGE))?,
            sizes,
            orders: Orders::default(),
        })
    }

    pub(in crate::kernel) fn maps(&self) -> [(&'static str, &MapData); 4] {
        [
            (KNOWN, self.known.map()),
            (FIRST_TRIES, self.first_tries.map()),
            (STANDING_FILTER, self.filter.map()),
            (SHORTAGE, self.shortage.map()),
        ]
    }

    /// Whether these sizes need another map of that name, even if the size is the same.
    pub(super) fn is_outdated(&self, map: &str, sizes: StandingSizes) -> bool {
        match map {
            // With another prefix length, the sources are other prefixes.
            KNOWN => self.sizes.ipv6_prefix != sizes.ipv6_prefix,
            // Each table has its own filter, even if tables of two sizes have filters of the same size: the programs of
            // the old table still use the old filter, and userspace fills the new one first.
            STANDING_FILTER => {
                self.sizes.ipv6_prefix != sizes.ipv6_prefix || self.sizes.lines != sizes.lines
            }
            _ => false,
        }
    }

    /// Every known source and its record, in no order and not at one moment. Includes expired
    /// records that are not yet replaced.
    pub fn all(&self) -> impl Iterator<Item = (SourceId, Record)> {
        self.in_lines(0..self.lines())
    }

    pub(in crate::kernel) fn lines(&self) -> u32 {
        self.known.count()
    }

    /// The sources of [`all`](Self::all) in some of the lines.
    pub(in crate::kernel) fn in_lines(
        &self,
        lines: Range<u32>,
    ) -> impl Iterator<Item = (SourceId, Record)> {
        let lines = lines.filter_map(|line| self.known.get(line));
        lines.flat_map(known_in)
    }

    /// Makes the filter of sources with a standing forget expired sources; reads the whole table.
    ///
    /// # Errors
    ///
    /// The kernel's; the filter then answers as before.
    pub(in crate::kernel) fn forget_in_filter(
        &self,
        features: &Features,
        at: &StandingContext<'_>,
    ) -> Result<(), DatapathError> {
        let at = StandingContext {
            now: Tick(at.now.0.wrapping_sub(MARGIN)),
            ..*at
        };
        let entries =
            self.known.all().iter().flat_map(|line| {
                (0..WAYS).map(move |way| (line.fingerprint(way), line.state(way)))
            });
        // A way is locked while another source may take it: its source stays if that fails. A source that takes it has
        // set its own bits.
        let kept = entries.filter(|(name, state)| {
            *name != EMPTY && (*state == LOCKED || Record(*state).current(&at).is_in_filter())
        });
        self.filter
            .keep_only(kept.map(|(name, _)| SourceId(name)), features)
    }

    /// The record of a source; [`Record::NONE`]: the source is unknown. `features`: the features of the
    /// policy that the maps were made for.
    #[must_use]
    pub fn record(&self, features: &Features, source: SourceId) -> Record {
        let line = self.known.get(sources::known_index(features, source));
        let mut found = line.into_iter().flat_map(known_in);
        let found = found.find(|(found, _)| *found == source);
        found.map_or(Record::NONE, |(_, record)| record)
    }

    /// The latest shortage.
    pub fn shortage(&self) -> Result<Shortage, DatapathError> {
        let word = self.shortage.get(&0, 0).map_err(error(SHORTAGE))?;
        Ok(Shortage(word))
    }
}

/// The number of entries of the named map; `None`: the map is not one of these, or its size is
/// fixed.
pub(super) fn entries(map: &str, sizes: StandingSizes) -> Option<u32> {
    match map {
        KNOWN => Some(sizes.lines),
        FIRST_TRIES => Some(sizes.first_try_lines),
        STANDING_FILTER => Some(words_in_map(sizes.lines)),
        _ => None,
    }
}
