//! Resumes from the last saved state: the limits' ids, the units, the secret of the table, bucket debts, bans and
//! known sources.

use limiter_datapath::{
    kernel::{DatapathError, PreparedPolicy, Settings, wall_clock_now},
    state::{Reason, Snapshot},
};
use tracing::info;

use super::saver::StateSaver;
use crate::{bans, candidate::Inheritance, messages::warn_of_lost};

/// The end of the warning if there is no state to resume from.
const BEGINS_ANEW: &str = "every bucket begins full, and no source is banned or known";

/// The state to resume from.
pub(crate) struct ResumeState(Snapshot);

impl ResumeState {
    /// Reads the state file. Sets an unusable one aside with a warning; then every bucket begins full.
    pub(crate) fn load(saver: &StateSaver) -> Option<Self> {
        saver.load(BEGINS_ANEW).map(Self)
    }

    /// Makes sure that an unreadable state file is not overwritten while the daemon continues from its pins.
    pub(crate) fn pass_over(saver: &StateSaver) {
        drop(saver.load("continuing from the pins"));
    }

    /// Sets the saved state aside, because the daemon cannot resume from it.
    pub(crate) fn refuse(saver: &StateSaver, reason: Reason) {
        saver.refuse(reason, BEGINS_ANEW);
    }

    /// Returns the limits' ids and the units that the policy inherits.
    pub(crate) fn inherited(&self) -> Inheritance {
        let units = self.0.sets.first().map(|set| set.debts.units.clone());
        Inheritance {
            in_force: Vec::new(),
            names: self.0.names.clone(),
            units: units.unwrap_or_default(),
        }
    }

    /// Returns settings with the saved secret of the table.
    pub(crate) fn settings(&self, settings: Settings) -> Settings {
        match self.0.sets.first() {
            Some(set) => settings.resuming(&set.debts),
            None => settings,
        }
    }

    /// Restores bucket debts, less the refill of the time since, bans and known sources.
    pub(crate) fn restore(&self, prepared: &PreparedPolicy) -> Result<(), DatapathError> {
        let Self(snapshot) = self;
        let restored = prepared.restore(&snapshot.sets, snapshot.age_ns(wall_clock_now()))?;
        info!(
            "resuming from the state of {:.0} (buckets in debt: {}, full by now: {})",
            snapshot.saved_at, restored.restored, restored.full
        );
        warn_of_lost(restored.lost);
        prepared.restore_sieves(&snapshot.sieves, snapshot.age_ns(wall_clock_now()));
        let passed_ns = snapshot.age_ns(wall_clock_now());
        let sources = prepared.restore_saved_sources(&snapshot.known, passed_ns)?;
        if sources > 0 {
            info!(
                sources,
                "the saved sources are known again (sources: {sources})"
            );
        }
        bans::restore(prepared, &snapshot.bans, &snapshot.hits)
    }
}
