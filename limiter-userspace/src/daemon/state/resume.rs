//! Going on where the daemon before has ended: with its limits' ids, its units, the secret of its
//! table, what buckets owed, and who was banned.

use limiter_datapath::{
    kernel::{DatapathError, Prepared, Settings, wall_clock_now},
    state::Snapshot,
};
use tracing::info;

use super::keeper::StateKeeper;
use crate::daemon::{bans, candidate::Known, tell::warn_of_lost};

/// What is so where there is nothing to go on with.
const BEGINS_ANEW: &str = "every bucket begins full, and nobody is banned";

/// What there is to go on with.
pub(in crate::daemon) struct Resumed(Snapshot);

impl Resumed {
    /// Reads the state file. One that is of no use is set aside with a warning, and every bucket
    /// begins full.
    pub(in crate::daemon) fn load(keeper: &StateKeeper) -> Option<Self> {
        keeper.load(BEGINS_ANEW).map(Self)
    }

    /// Sees to it that a state file that cannot be read is not overwritten, where what is pinned is
    /// gone on with in its place.
    pub(in crate::daemon) fn pass_over(keeper: &StateKeeper) {
        drop(keeper.load("what is pinned goes on"));
    }

    /// What was saved cannot be gone on with: it is set aside.
    pub(in crate::daemon) fn refuse(keeper: &StateKeeper, reason: String) {
        keeper.refuse(reason, BEGINS_ANEW);
    }

    /// The limits' ids and the units, which the policy is to go on with.
    pub(in crate::daemon) fn known(&self) -> Known {
        let units = self.0.sets.first().map(|set| set.debts.units.clone());
        Known {
            in_force: Vec::new(),
            names: self.0.names.clone(),
            units: units.unwrap_or_default(),
        }
    }

    /// Settings with the secret of the table that was saved.
    pub(in crate::daemon) fn settings(&self, settings: Settings) -> Settings {
        match self.0.sets.first() {
            Some(set) => settings.resuming(&set.debts),
            None => settings,
        }
    }

    /// Puts back what buckets owed, less the time that has passed, and bans who was banned.
    pub(in crate::daemon) fn restore(&self, prepared: &Prepared) -> Result<(), DatapathError> {
        let Self(snapshot) = self;
        let restored = prepared.restore(&snapshot.sets, snapshot.age_ns(wall_clock_now()))?;
        info!(
            "going on with the state of {:.0} (buckets in debt: {}, full by now: {})",
            snapshot.saved_at, restored.restored, restored.full
        );
        warn_of_lost(restored.lost);
        prepared.restore_sieves(&snapshot.sieves, snapshot.age_ns(wall_clock_now()));
        bans::restore(prepared, &snapshot.bans)
    }
}
