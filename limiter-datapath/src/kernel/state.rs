//! Buckets, counters and offenders: what stays when a policy replaces another.

use std::collections::BTreeMap;

use limiter_common::{
    counters::{LimitTraffic, Traffic},
    limit::LimitId,
    reason::Reason,
    sieve::{SieveTraffic, pressure_of_limit},
    unit::Unit,
};
use limiter_policy::{
    config::{Buckets, Scope},
    policy::Units,
};
use tracing::warn;

use super::{
    DatapathError, Manifest, Recorded, ReputationMaps, Settings, SharedMaps, monotonic_now,
    named::NamedMaps as _, pins::Pins,
};

/// The one set of all interfaces, where they share it.
const HOST: &str = "host";

/// Reputations, which all interfaces share.
const REPUTATION: &str = "reputation";

/// The sets of maps: one of all interfaces, or one of each.
pub(super) struct State {
    /// The generation of policies that it began with.
    generation: u64,
    settings: Settings,
    /// By the interface's slot; the one of all is under 0.
    sets: BTreeMap<u32, SharedMaps>,
    /// One for all interfaces.
    reputation: Option<ReputationMaps>,
}

impl State {
    /// Without any set yet.
    pub(super) const fn new(generation: u64, settings: Settings) -> Self {
        Self {
            generation,
            settings,
            sets: BTreeMap::new(),
            reputation: None,
        }
    }

    /// What is pinned for a policy.
    pub(super) fn open(pins: &Pins, manifest: &Manifest) -> Result<Self, DatapathError> {
        let (generation, settings) = (manifest.state, manifest.settings);
        let mut state = Self::new(generation, settings);
        for owner in pins.state_owners(generation)? {
            if owner == REPUTATION {
                let directory = pins.state(generation, REPUTATION);
                state.reputation = Some(ReputationMaps::open(&directory, settings)?);
                continue;
            }
            let slot = match (settings.buckets.scope, owner.as_str()) {
                (Scope::Host, HOST) => 0,
                (Scope::Interface, slot) if slot != HOST => match slot.parse() {
                    Ok(slot) => slot,
                    Err(_) => continue,
                },
                _ => continue,
            };
            let maps = SharedMaps::open(&pins.state(generation, &owner), settings)?;
            state.sets.insert(slot, maps);
        }
        Ok(state)
    }

    /// The generation of policies that it began with.
    pub(super) const fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether it can go on with other settings.
    pub(super) fn fits(&self, settings: Settings) -> bool {
        self.settings.buckets.scope == settings.buckets.scope
            && self.settings.buckets.store == settings.buckets.store
            && self.settings.hash_key == settings.hash_key
            && self.sets.values().all(|maps| maps.fit(settings))
            && self
                .reputation
                .as_ref()
                .is_none_or(|maps| maps.fit(settings))
    }

    /// Goes on with other settings, which must fit.
    pub(super) fn set(&mut self, settings: Settings) {
        self.settings = settings;
        for maps in self.sets.values_mut() {
            maps.set(settings);
        }
    }

    /// Whether the buckets themselves can go on with other settings.
    pub(super) fn fits_buckets(&self, buckets: Buckets) -> bool {
        let Buckets {
            store,
            capacity,
            scope,
            when_full: _,
        } = self.settings.buckets;
        (store, capacity, scope) == (buckets.store, buckets.capacity, buckets.scope)
    }

    /// Makes the set of the interface in `slot`, unless it is there, or can go on with `present`.
    /// What of it fits is that of `present`, such as the counters.
    pub(super) fn provide(&mut self, slot: u32, present: &Self) -> Result<(), DatapathError> {
        let is_present = self.generation == present.generation;
        self.provide_reputation(is_present, present)?;
        let key = self.key(slot);
        let goes_on = is_present && present.of(slot).is_some();
        if goes_on || self.of(slot).is_some() {
            return Ok(());
        }
        let has_same_sets = self.settings.buckets.scope == present.settings.buckets.scope;
        let set = match present.of(slot).filter(|_| has_same_sets) {
            Some(maps) => maps.renew(self.settings)?,
            None => SharedMaps::create(self.settings)?,
        };
        self.sets.insert(key, set);
        Ok(())
    }

    fn provide_reputation(
        &mut self,
        is_present: bool,
        present: &Self,
    ) -> Result<(), DatapathError> {
        if self.reputation.is_none() && !(is_present && present.reputation.is_some()) {
            self.reputation = Some(match &present.reputation {
                Some(maps) => maps.renew(self.settings)?,
                None => ReputationMaps::create(self.settings)?,
            });
        }
        Ok(())
    }

    /// Takes over what is known of sources, as far as its maps are others; fails before anything is
    /// written where there is no room.
    pub(super) fn carry_reputation(&self, present: &Self) -> Result<(), DatapathError> {
        match (&self.reputation, &present.reputation) {
            (Some(new), Some(old)) => new.carry(old, monotonic_now()),
            _ => Ok(()),
        }
    }

    /// Knows of sources from now on what another state knows; returns how many bans there is no room
    /// for.
    pub(super) fn follow_reputation(&self, present: &Self) -> Result<usize, DatapathError> {
        match (&self.reputation, &present.reputation) {
            (Some(own), Some(present)) => own.follow(present),
            _ => Ok(0),
        }
    }

    /// Adds the sets of another state with the same settings.
    pub(super) fn extend(&mut self, other: Self) {
        self.sets.extend(other.sets);
        self.reputation = other.reputation.or_else(|| self.reputation.take());
    }

    /// What is known of sources; `None`: no set is provided yet.
    pub(super) const fn reputation(&self) -> Option<&ReputationMaps> {
        self.reputation.as_ref()
    }

    /// The same, to be changed.
    pub(super) const fn reputation_mut(&mut self) -> Option<&mut ReputationMaps> {
        self.reputation.as_mut()
    }

    /// Pins what is not pinned.
    pub(super) fn pin(&self, pins: &Pins) -> Result<(), DatapathError> {
        let pinned = pins.state_owners(self.generation)?;
        for (slot, maps) in &self.sets {
            let owner = self.owner(*slot);
            if !pinned.contains(&owner) {
                maps.pin(&pins.make_state(self.generation, &owner)?)?;
            }
        }
        if let Some(maps) = &self.reputation
            && !pinned.iter().any(|owner| owner == REPUTATION)
        {
            maps.pin(&pins.make_state(self.generation, REPUTATION)?)?;
        }
        Ok(())
    }

    /// Forgets what was counted for the interface in `slot`, and the set that it has to itself:
    /// another interface may get the slot.
    pub(super) fn forget(&mut self, slot: u32, pins: Option<&Pins>) -> Result<(), DatapathError> {
        if self.settings.buckets.scope == Scope::Host {
            return self
                .sets
                .values_mut()
                .try_for_each(|maps| maps.forget_interface(slot));
        }
        self.sets.remove(&slot);
        if let Some(pins) = pins {
            pins.remove_state(self.generation, &self.owner(slot))?;
        }
        Ok(())
    }

    /// Fills the buckets that count in units whose numbers are other ones' in `after`.
    pub(super) fn clear_taken_over(
        &self,
        before: &Units,
        after: &Units,
    ) -> Result<(), DatapathError> {
        let mut cleared = 0;
        for maps in self.sets() {
            cleared += maps.buckets().clear_taken_over(before, after)?;
        }
        if cleared > 0 {
            warn!(
                cleared,
                "too many different rates since the buckets are there: what was owed at rates that \
                 no limit has any more is forgotten (buckets: {cleared})"
            );
        }
        Ok(())
    }

    /// The units that its buckets count in, of which `known` may not know all.
    pub(super) fn units(&self, known: &Units) -> Result<Units, DatapathError> {
        Ok(known.as_in_kernel(&self.units_in_kernel()?).0)
    }

    fn units_in_kernel(&self) -> Result<BTreeMap<u32, Unit>, DatapathError> {
        let mut in_kernel = BTreeMap::new();
        for maps in self.sets() {
            // Where two sets differ, a number was given for a policy that was never in force: no
            // bucket counts in it.
            for (number, unit) in maps.buckets().known_units()? {
                in_kernel.entry(number).or_insert(unit);
            }
        }
        Ok(in_kernel)
    }

    /// Frees what daemons before this one have left locked, and fills what counts in numbers that
    /// are of no use.
    pub(super) fn clean_up(&self, known: &Units) -> Result<(), DatapathError> {
        let (_, of_no_use) = known.as_in_kernel(&self.units_in_kernel()?);
        let of_no_use = of_no_use.into_iter().collect();
        let mut freed = 0;
        for maps in self.sets() {
            freed += maps.buckets().free_abandoned_locks()?;
            maps.buckets().clear_units(&of_no_use)?;
        }
        if freed > 0 {
            warn!(
                freed,
                "buckets were locked that a daemon was changing when it was killed: they are full \
                 (buckets: {freed})"
            );
        }
        Ok(())
    }

    /// The interfaces' slots that have sets to themselves.
    pub(super) fn slots(&self) -> Vec<u32> {
        self.by_slot().filter_map(|(slot, _)| slot).collect()
    }

    /// Forgets all of a limit that is in force nowhere: another gets its id.
    pub(super) fn forget_limit(
        &mut self,
        limit: LimitId,
        units: &Units,
    ) -> Result<(), DatapathError> {
        if let Some(reputation) = &mut self.reputation {
            let sieves = reputation.sieves_mut();
            sieves.set_traffic(pressure_of_limit(limit), SieveTraffic::default())?;
        }
        self.sets
            .values_mut()
            .try_for_each(|maps| maps.forget_limit(limit, units))
    }

    /// The maps of the interface in `slot`, if they are provided.
    pub(super) fn of(&self, slot: u32) -> Option<&SharedMaps> {
        self.sets.get(&self.key(slot))
    }

    /// All sets, with the slots of the interfaces that have one to themselves.
    pub(super) fn by_slot(&self) -> impl Iterator<Item = (Option<u32>, &SharedMaps)> {
        let is_shared = self.settings.buckets.scope == Scope::Host;
        self.sets
            .iter()
            .map(move |(slot, maps)| ((!is_shared).then_some(*slot), maps))
    }

    /// All sets.
    pub(super) fn sets(&self) -> impl Iterator<Item = &SharedMaps> {
        self.sets.values()
    }

    /// What was counted under a reason on the interface in `slot`.
    pub(super) fn reason_traffic(
        &self,
        slot: u32,
        reason: Reason,
    ) -> Result<Traffic, DatapathError> {
        self.of(slot).map_or(Ok(Traffic::default()), |maps| {
            maps.reason_traffic(slot, reason)
        })
    }

    /// What was counted for a limit on all interfaces.
    pub(super) fn limit_traffic(&self, limit: LimitId) -> Result<LimitTraffic, DatapathError> {
        let mut total = LimitTraffic::default();
        for maps in self.sets() {
            total += maps.limit_traffic(limit)?;
        }
        Ok(total)
    }

    /// How many buckets were forgotten while they were in debt, for want of room.
    pub(super) fn lossy_evictions(&self) -> Result<u64, DatapathError> {
        self.sets().map(SharedMaps::lossy_evictions).sum()
    }

    /// Everyone who was recorded as an offender.
    pub(super) fn offenders(&self) -> Result<Recorded, DatapathError> {
        let mut all = Recorded::default();
        for maps in self.sets() {
            all.add(maps.offenders().read()?);
        }
        Ok(all)
    }

    const fn key(&self, slot: u32) -> u32 {
        match self.settings.buckets.scope {
            Scope::Host => 0,
            Scope::Interface => slot,
        }
    }

    fn owner(&self, key: u32) -> String {
        match self.settings.buckets.scope {
            Scope::Host => HOST.to_owned(),
            Scope::Interface => key.to_string(),
        }
    }
}
