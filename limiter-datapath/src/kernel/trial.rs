//! Runs the kernel's program on trial: unattached, one frame at a time, on a clock that the caller
//! sets.

#[cfg(feature = "testing")]
mod testing;

use std::collections::BTreeSet;

use limiter_common::{
    answer::Answer,
    ban::BanKey,
    decide::Verdict,
    packet::TcpState,
    standing::{StandingContext, Tick},
};
use limiter_policy::{
    config::{Buckets, Offenders},
    policy::CompiledPolicy,
};

use super::{
    ClockSource, DatapathError, Instance, LogLevel, Settings, SharedMaps, SourceMaps,
    instance::Constants, map_directory::MapDirectory, pinned_maps::PinnedMaps as _,
};
use limiter_native::{PrefixStanding, standing_of};

/// An instance that reports its verdict on each frame.
pub struct Trial {
    policy: CompiledPolicy,
    #[cfg(feature = "testing")]
    settings: Settings,
    /// The directory through which the next instance finds the maps.
    #[cfg(feature = "testing")]
    directory: MapDirectory,
    instance: Instance,
    /// The last frame that was sent back; empty: none was.
    answer: Vec<u8>,
    maps: SharedMaps,
    source_maps: SourceMaps,
}

impl Trial {
    /// Loads the program with its own buckets, counters and offenders, and with the secret of the
    /// policy's tables, so that its decisions match the native ones.
    pub fn with_same_secret(
        policy: &CompiledPolicy,
        buckets: Buckets,
        offenders: Offenders,
    ) -> Result<Self, DatapathError> {
        let settings = Settings::new(buckets, offenders, LogLevel::Off)?;
        let hash_key = policy.features.hash_key;
        Self::with_settings(
            policy,
            Settings {
                hash_key,
                ..settings
            },
        )
    }

    fn with_settings(policy: &CompiledPolicy, settings: Settings) -> Result<Self, DatapathError> {
        let settings = settings.sized_for(policy);
        let directory = MapDirectory::new()?;
        let instance = load(policy, settings, &directory)?;
        let source_maps = SourceMaps::open(directory.path(), settings)?;
        // A trial has no host, and so no own addresses.
        source_maps.own().set(&BTreeSet::new())?;
        Ok(Self {
            policy: policy.clone(),
            #[cfg(feature = "testing")]
            settings,
            instance,
            answer: Vec::new(),
            maps: SharedMaps::open(directory.path(), settings)?,
            source_maps,
            #[cfg(feature = "testing")]
            directory,
        })
    }

    /// Sets the connection state that segments other than SYNs find.
    ///
    /// # Errors
    ///
    /// The kernel's errors.
    pub fn set_tcp_state(&mut self, state: TcpState) -> Result<(), DatapathError> {
        self.instance.set_tcp_state(state)
    }

    /// Decides on a frame at the time `now_ns` of the program's clock.
    ///
    /// # Errors
    ///
    /// The kernel's errors, and [`DatapathError::NoVerdict`] unless the program reports a verdict
    /// and acts on it.
    pub fn judge(&mut self, now_ns: u64, frame: &[u8]) -> Result<Verdict, DatapathError> {
        let (action, verdict) = self.instance.test(now_ns, frame, &mut self.answer)?;
        let is_answered = verdict.answer() != Answer::Drop;
        if verdict.action(&self.policy) == action && is_answered != self.answer.is_empty() {
            Ok(verdict)
        } else {
            Err(DatapathError::NoVerdict)
        }
    }

    /// The answer to the last frame; empty if it had none.
    #[must_use]
    pub fn answer(&self) -> &[u8] {
        &self.answer
    }

    /// The standing of a prefix at the time `now_ns` of the program's clock.
    pub fn standing_of(
        &self,
        prefix: &BanKey,
        now_ns: u64,
    ) -> Result<PrefixStanding, DatapathError> {
        let (maps, features) = (self.source_maps.standing(), &self.policy.features);
        let at = StandingContext {
            settings: &features.standing,
            shortage: maps.shortage()?,
            now: Tick::of_ns(now_ns),
        };
        let record = |source| maps.record(features, source);
        Ok(standing_of(&self.policy, prefix, &at, record))
    }

    /// The buckets, counters and offenders.
    #[must_use]
    pub const fn maps(&self) -> &SharedMaps {
        &self.maps
    }

    /// The source maps.
    #[must_use]
    pub const fn source_maps(&self) -> &SourceMaps {
        &self.source_maps
    }

    /// The source maps, to be changed.
    pub const fn source_maps_mut(&mut self) -> &mut SourceMaps {
        &mut self.source_maps
    }
}

fn load(
    policy: &CompiledPolicy,
    settings: Settings,
    directory: &MapDirectory,
) -> Result<Instance, DatapathError> {
    let object = settings.log.object();
    let constants = Constants::new(policy, settings, ClockSource::Test);
    let mut instance = Instance::prepare_alone(object, &constants, Some(directory.path()))?;
    instance.verify()?;
    Ok(instance)
}
