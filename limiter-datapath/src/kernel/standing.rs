//! What is known of sources under the policy in force.

mod saved;

use std::net::IpAddr;

use limiter_common::{
    address::Address,
    ban::BanKey,
    policy::Shape,
    standing::{Event, Moment, Record, Settings, Shortage, SourceId, Standing, Tick},
};
use limiter_policy::policy::CompiledPolicy;

use super::{
    Datapath, DatapathError, ReputationMaps, StandingMaps, monotonic_now, replace::Prepared,
};
use crate::standing_of::{PrefixStanding, standing_of};

/// What is known of sources, as long as the policy stays in force.
#[derive(Clone, Copy)]
pub struct KnownSources<'d> {
    maps: &'d StandingMaps,
    shape: Shape,
    policy: &'d CompiledPolicy,
}

impl Datapath {
    /// Returns what is known of sources.
    ///
    /// # Errors
    ///
    /// [`DatapathError::NoStanding`]: the policy in force does not ask.
    pub fn known_sources(&self) -> Result<KnownSources<'_>, DatapathError> {
        let maps = self.reputation().map(ReputationMaps::standing);
        let settings = self.policy.shape.standing;
        match maps {
            Some(maps) if self.policy.shape.uses_standing() => Ok(KnownSources {
                maps,
                shape: self.settings().shape_of_standing(settings),
                policy: &self.policy,
            }),
            _ => Err(DatapathError::NoStanding),
        }
    }
}

impl KnownSources<'_> {
    /// Returns how sources get their standing.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.shape.standing
    }

    /// Returns the source that an address belongs to.
    #[must_use]
    pub fn source(&self, address: IpAddr) -> SourceId {
        SourceId::new(self.settings(), &Address::from(address))
    }

    /// Returns all that the worth of records depends on now.
    pub fn moment(&self) -> Result<Moment<'_>, DatapathError> {
        Ok(Moment {
            settings: self.settings(),
            shortage: self.shortage()?,
            now: Tick::of_ns(monotonic_now()),
        })
    }

    /// Returns the latest shortage.
    pub fn shortage(&self) -> Result<Shortage, DatapathError> {
        self.maps.shortage()
    }

    /// Returns every known source and its record, in no order and not at one moment; also
    /// expired records that are not yet replaced.
    pub fn all(&self) -> impl Iterator<Item = (SourceId, Record)> {
        self.maps.all()
    }

    /// Returns every known source and its record at a moment, without what has expired.
    pub fn all_at(&self, at: &Moment<'_>) -> impl Iterator<Item = (SourceId, Record)> {
        let now = self
            .all()
            .map(|(source, record)| (source, record.current(at)));
        now.filter(|(_, record)| *record != Record::NONE)
    }

    /// Counts the sources of each standing, in the order of [`Standing::ALL`]. Those that came, but
    /// on too few occasions, are unknown.
    pub fn count(&self) -> Result<[u64; Standing::COUNT], DatapathError> {
        let at = self.moment()?;
        let mut counts = [0; Standing::COUNT];
        for (_, record) in self.all_at(&at) {
            counts[record.standing(&at) as usize] += 1;
        }
        Ok(counts)
    }

    /// Returns the record of a source; [`Record::NONE`]: nothing is known of it.
    #[must_use]
    pub fn record(&self, source: SourceId) -> Record {
        self.maps.record(&self.shape, source)
    }

    /// Returns the standing of a prefix, by lists and by the record of its source.
    #[must_use]
    pub fn standing_of_prefix(&self, prefix: &BanKey, at: &Moment<'_>) -> PrefixStanding {
        standing_of(self.policy, prefix, at, |source| self.record(source))
    }

    /// Has the kernel note an event of a source now, such as that an operator trusts it, or that
    /// an operator wants it forgotten. Returns its record after it: [`Record::NONE`] if there is no
    /// room for the source, because all others in its line are of a higher rank.
    pub fn note(&self, source: SourceId, event: Event) -> Result<Record, DatapathError> {
        self.maps
            .note(&self.shape, source, event, monotonic_now())?;
        Ok(self.record(source))
    }
}

impl Prepared {
    /// Restores saved records of sources, in ticks of the kernel's clock, into new maps, as far as
    /// there is room. Does nothing if the policy uses no standing, or the maps are the present
    /// ones.
    pub fn restore_known(
        &self,
        records: impl Iterator<Item = (SourceId, Record)>,
    ) -> Result<(), DatapathError> {
        match self.reputation() {
            Some(maps) => maps
                .standing()
                .fill(records, self.settings(), monotonic_now()),
            None => Ok(()),
        }
    }
}
