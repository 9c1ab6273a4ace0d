//! Fills a table of known sources that no program uses yet, from another table or from saved
//! sources.

use limiter_common::{
    address::Family,
    standing::{self, Event, Record, SourceId},
};

use super::{KNOWN, SHORTAGE, StandingMaps, StandingSizes};
use crate::kernel::{DatapathError, Settings, batch, map::error};
use limiter_native::MemoryStanding;

impl StandingSizes {
    /// Settings under which every record counts.
    const fn settings(&self) -> standing::Settings {
        standing::Settings {
            lines: self.lines,
            ipv6_prefix: self.ipv6_prefix,
            remember_ns: u64::MAX,
            ..standing::Settings::NONE
        }
    }
}

impl StandingMaps {
    /// Adds the known sources of other maps, unless the maps are the same, and takes over their
    /// shortage. Forgets sources with a prefix too short for these maps.
    pub(in crate::kernel) fn migrate_from(
        &self,
        from: &Self,
        settings: Settings,
        now_ns: u64,
    ) -> Result<(), DatapathError> {
        if self.id()? == from.id()? || self.sizes.lines == 0 {
            return Ok(());
        }
        let of_source = self.sizes.settings();
        let is_longer = from.sizes.ipv6_prefix < self.sizes.ipv6_prefix;
        let theirs = from.all().filter_map(|(source, record)| {
            let address = source.address();
            let fits = address.family == Family::V4 || !is_longer;
            fits.then(|| (SourceId::new(&of_source, &address), record))
        });
        self.fill(theirs, settings, now_ns)?;
        let shortage = from.shortage()?;
        batch::update(&self.shortage, &[0], &[shortage.0]).map_err(error(SHORTAGE))
    }

    /// Adds these records of sources, in ticks of the kernel's clock, as far as there is room.
    pub(in crate::kernel) fn fill(
        &self,
        records: impl Iterator<Item = (SourceId, Record)>,
        settings: Settings,
        now_ns: u64,
    ) -> Result<(), DatapathError> {
        let features = settings.features_of_standing(self.sizes.settings());
        let memory = MemoryStanding::new(&features.standing);
        for (source, record) in records.chain(self.all()) {
            memory.happened(&features, source, Event::Recall { record }, now_ns);
        }
        let lines: Vec<_> = memory.known_lines().collect();
        // The filter first: it must have all sources of the table.
        self.filter
            .write(&memory.filter_words().collect::<Vec<_>>())?;
        self.known.write(&lines).map_err(error(KNOWN))
    }

    fn id(&self) -> Result<u32, DatapathError> {
        let info = self.known.map().info().map_err(error(KNOWN))?;
        Ok(info.id())
    }
}
