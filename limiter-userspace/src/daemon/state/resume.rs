//! Going on where the daemon before has ended: with its limits' ids, its units, the secret of its
//! table, and what buckets owed.

use tracing::{info, warn};

use super::StateKeeper;
use crate::{
    datapath::{BucketMaps, DatapathError, Settings, monotonic_now, wall_clock_now},
    policy::{CompileError, CompiledPolicy, Names, Policy, TooManyNames, Units},
    state::Snapshot,
};

/// What there is to go on with, if anything.
pub(in crate::daemon) struct Resumed(Option<Snapshot>);

impl Resumed {
    /// Reads the state file. One that is of no use is a warning, and the daemon begins anew.
    pub(in crate::daemon) fn load(keeper: Option<&StateKeeper>) -> Self {
        let loaded = keeper.map_or(Ok(None), |keeper| keeper.file.load());
        Self(loaded.unwrap_or_else(|error| {
            warn!("{error}; every bucket begins full");
            None
        }))
    }

    /// Gives the policy's limits the ids that they had, so that their buckets are theirs.
    pub(in crate::daemon) fn name(&self, policy: Policy) -> Result<(Policy, Names), TooManyNames> {
        match &self.0 {
            Some(snapshot) => policy.with_names(&snapshot.names),
            None => policy.with_names(&Names::default()),
        }
    }

    /// Compiles the policy so that it counts in the units that are known. Where there are too many
    /// of them, nothing of the state is of use.
    pub(in crate::daemon) fn compile(
        &mut self,
        policy: &Policy,
    ) -> Result<CompiledPolicy, CompileError> {
        let Some(snapshot) = &self.0 else {
            return CompiledPolicy::new(policy);
        };
        match CompiledPolicy::with_units(policy, &snapshot.debts.units) {
            Err(CompileError::TooManyUnits(error)) => {
                let compiled = CompiledPolicy::new(policy)?;
                warn!("the state cannot be gone on with: {error}; every bucket begins full");
                self.0 = None;
                Ok(compiled)
            }
            compiled => compiled,
        }
    }

    /// Settings with the secret of the table that was saved.
    pub(in crate::daemon) const fn settings(&self, settings: Settings) -> Settings {
        match &self.0 {
            Some(snapshot) => settings.resuming(&snapshot.debts),
            None => settings,
        }
    }

    /// Puts back what buckets owed, less the time that has passed.
    pub(in crate::daemon) fn restore(
        &self,
        buckets: &BucketMaps,
        units: &Units,
    ) -> Result<(), DatapathError> {
        let Some(snapshot) = &self.0 else {
            return Ok(());
        };
        let age_ns = snapshot.age_ns(wall_clock_now());
        let restored = buckets.restore(&snapshot.debts, units, monotonic_now(), age_ns)?;
        info!(
            "going on with the state of {:.0} (buckets in debt: {}, full by now: {})",
            snapshot.saved_at, restored.restored, restored.full
        );
        if restored.lost > 0 {
            warn!(
                "{} buckets that were in debt begin full: `buckets` has changed, and has no room \
                 for them or no way to tell whose they are",
                restored.lost
            );
        }
        Ok(())
    }
}
