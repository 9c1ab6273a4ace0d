//! The records of sources under the policy in force.

mod saved;

use std::{net::IpAddr, ops::Range};

use limiter_common::{
    address::Address,
    ban::BanKey,
    policy::Features,
    standing::{Event, Record, Settings, Shortage, SourceId, Standing, StandingContext, Tick},
};
use limiter_policy::policy::CompiledPolicy;

use super::{
    Datapath, DatapathError, SourceMaps, StandingMaps, monotonic_now, replace::PreparedPolicy,
};
use limiter_native::{PrefixStanding, standing_of};

/// The records of sources, for as long as the policy stays in force.
#[derive(Clone, Copy)]
pub struct KnownSources<'d> {
    maps: &'d StandingMaps,
    features: Features,
    policy: &'d CompiledPolicy,
}

impl Datapath {
    /// The records of sources.
    ///
    /// # Errors
    ///
    /// [`DatapathError::NoStanding`]: the policy in force uses no standing.
    pub fn known_sources(&self) -> Result<KnownSources<'_>, DatapathError> {
        let maps = self.source_maps().map(SourceMaps::standing);
        let settings = self.policy.features.standing;
        match maps {
            Some(maps) if self.policy.features.uses_standing() => Ok(KnownSources {
                maps,
                features: self.settings().features_of_standing(settings),
                policy: &self.policy,
            }),
            _ => Err(DatapathError::NoStanding),
        }
    }
}

impl KnownSources<'_> {
    /// The rules by which sources get their standing.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.features.standing
    }

    /// The source that an address belongs to.
    #[must_use]
    pub fn source(&self, address: IpAddr) -> SourceId {
        SourceId::new(self.settings(), &Address::from(address))
    }

    /// The time, the shortage and the settings that the value of records depends on now.
    pub fn standing_context(&self) -> Result<StandingContext<'_>, DatapathError> {
        Ok(StandingContext {
            settings: self.settings(),
            shortage: self.shortage()?,
            now: Tick::of_ns(monotonic_now()),
        })
    }

    /// The latest shortage.
    pub fn shortage(&self) -> Result<Shortage, DatapathError> {
        self.maps.shortage()
    }

    /// Every known source and its record, in no order and not at one moment. Includes expired
    /// records that are not yet replaced.
    pub fn all(&self) -> impl Iterator<Item = (SourceId, Record)> {
        self.maps.all()
    }

    /// The number of lines, each of a few sources.
    #[must_use]
    pub fn lines(&self) -> u32 {
        self.maps.lines()
    }

    /// The sources of [`all`](Self::all) in some of the lines.
    pub fn in_lines(&self, lines: Range<u32>) -> impl Iterator<Item = (SourceId, Record)> {
        self.maps.in_lines(lines)
    }

    /// Every known source and its record at a moment, without expired records.
    pub fn all_at(&self, at: &StandingContext<'_>) -> impl Iterator<Item = (SourceId, Record)> {
        let now = self
            .all()
            .map(|(source, record)| (source, record.current(at)));
        now.filter(|(_, record)| *record != Record::NONE)
    }

    /// The number of sources of each standing, in the order of [`Standing::ALL`]. Sources that came
    /// on too few occasions count as unknown.
    pub fn count(&self) -> Result<[u64; Standing::COUNT], DatapathError> {
        let at = self.standing_context()?;
        let mut counts = [0; Standing::COUNT];
        for (_, record) in self.all_at(&at) {
            counts[record.standing(&at) as usize] += 1;
        }
        Ok(counts)
    }

    /// Whether the filter answers that a source may have a standing.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn may_have_standing(&self, source: SourceId) -> bool {
        self.maps.may_have_standing(&self.features, source)
    }

    /// Makes the filter of sources with a standing forget expired sources; reads all records.
    ///
    /// # Errors
    ///
    /// The kernel's; the filter then answers as before.
    pub fn forget_in_filter(&self) -> Result<(), DatapathError> {
        let at = self.standing_context()?;
        self.maps.forget_in_filter(&self.features, &at)
    }

    /// The record of a source; [`Record::NONE`]: the source is unknown.
    #[must_use]
    pub fn record(&self, source: SourceId) -> Record {
        self.maps.record(&self.features, source)
    }

    /// The standing of a prefix, by lists and by the record of its source.
    #[must_use]
    pub fn standing_of_prefix(&self, prefix: &BanKey, at: &StandingContext<'_>) -> PrefixStanding {
        standing_of(self.policy, prefix, at, |source| self.record(source))
    }

    /// Has the kernel record an event of a source now, such as an operator's trust, or its
    /// withdrawal. Returns its record afterwards: [`Record::NONE`] if there is no room for the
    /// source, because all others in its line are of a higher rank.
    pub fn record_event(&self, source: SourceId, event: Event) -> Result<Record, DatapathError> {
        self.maps
            .record_event(&self.features, source, event, monotonic_now())?;
        Ok(self.record(source))
    }
}

impl PreparedPolicy {
    /// Restores saved records of sources, in ticks of the kernel's clock, into new maps, as far as
    /// there is room. Does nothing if the policy uses no standing, or the maps are the present
    /// ones.
    pub fn restore_known(
        &self,
        records: impl Iterator<Item = (SourceId, Record)>,
    ) -> Result<(), DatapathError> {
        match self.source_maps() {
            Some(maps) => maps
                .standing()
                .fill(records, self.settings(), monotonic_now()),
            None => Ok(()),
        }
    }
}
