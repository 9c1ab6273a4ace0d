//! The shared maps: the maps that stay when one policy replaces another.

use std::{collections::BTreeMap, path::PathBuf};

use limiter_common::{
    answer::Answer,
    counters::{LimitTraffic, Traffic},
    limit::LimitId,
    reason::Reason,
    sieve::{SieveTraffic, pressure_of_limit},
    standing::Standing,
    strategy::gcra::CurrentRate,
    unit::Unit,
};
use limiter_policy::{
    config::{Buckets, Scope},
    policy::{Policy, Units},
};
use tracing::warn;

use super::{
    BucketMaps, DatapathError, Manifest, OffenderRecords, Settings, SharedMaps, SourceMaps,
    monotonic_now, pinned_maps::PinnedMaps as _, pins::Pins,
};

const HOST: &str = "host";

const SOURCE_MAPS: &str = "reputation";

/// The sets of maps: one for all interfaces, or one for each.
pub(super) struct SharedMapSets {
    /// The generation of policies with which these sets began.
    generation: u64,
    settings: Settings,
    /// By interface number; a shared set is under 0.
    sets: BTreeMap<u32, SharedMaps>,
    /// Shared by all interfaces.
    source_maps: Option<SourceMaps>,
}

impl SharedMapSets {
    pub(super) const fn new(generation: u64, settings: Settings) -> Self {
        Self {
            generation,
            settings,
            sets: BTreeMap::new(),
            source_maps: None,
        }
    }

    /// Opens the maps that are pinned for a policy.
    pub(super) fn open(pins: &Pins, manifest: &Manifest) -> Result<Self, DatapathError> {
        let (generation, settings) = (manifest.maps_generation, manifest.settings);
        let mut shared_maps = Self::new(generation, settings);
        for owner in pins.shared_map_owners(generation)? {
            if owner == SOURCE_MAPS {
                let directory = pins.shared_maps(generation, SOURCE_MAPS);
                shared_maps.source_maps = Some(SourceMaps::open(&directory, settings)?);
                continue;
            }
            let interface_number = match (settings.buckets.scope, owner.as_str()) {
                (Scope::Host, HOST) => 0,
                (Scope::Interface, interface_number) if interface_number != HOST => {
                    match interface_number.parse() {
                        Ok(interface_number) => interface_number,
                        Err(_) => continue,
                    }
                }
                _ => continue,
            };
            let maps = SharedMaps::open(&pins.shared_maps(generation, &owner), settings)?;
            shared_maps.sets.insert(interface_number, maps);
        }
        Ok(shared_maps)
    }

    pub(super) const fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether the same maps can serve other settings.
    pub(super) fn fits(&self, settings: Settings) -> bool {
        self.settings.buckets.scope == settings.buckets.scope
            && self.settings.buckets.store == settings.buckets.store
            && self.settings.hash_key == settings.hash_key
            && self.sets.values().all(|maps| maps.fit(settings))
            && self
                .source_maps
                .as_ref()
                .is_none_or(|maps| maps.fit(settings))
    }

    /// Changes the settings. The maps must fit them.
    pub(super) fn set(&mut self, settings: Settings) {
        self.settings = settings;
        for maps in self.sets.values_mut() {
            maps.set(settings);
        }
    }

    /// Whether the same buckets can serve other settings.
    pub(super) fn fits_buckets(&self, buckets: Buckets) -> bool {
        let Buckets {
            store,
            capacity,
            scope,
            when_full: _,
        } = self.settings.buckets;
        (store, capacity, scope) == (buckets.store, buckets.capacity, buckets.scope)
    }

    /// Makes the set of the interface with the number `interface_number`, unless it exists or the set of
    /// `present` can serve. Takes over the maps of `present` that fit, such as the counters.
    pub(super) fn provide(
        &mut self,
        interface_number: u32,
        present: &Self,
    ) -> Result<(), DatapathError> {
        let is_present = self.generation == present.generation;
        let key = self.key(interface_number);
        let has_set =
            self.sets.contains_key(&key) || is_present && present.of(interface_number).is_some();
        let has_source_maps =
            self.source_maps.is_some() || is_present && present.source_maps.is_some();
        let has_same_sets = self.settings.buckets.scope == present.settings.buckets.scope;
        let old_set = present.of(interface_number).filter(|_| has_same_sets);
        if let (false, None, false, None) =
            (has_set, old_set, has_source_maps, &present.source_maps)
        {
            let (set, source_maps) = SharedMaps::create_with(self.settings)?;
            self.sets.insert(key, set);
            self.source_maps = Some(source_maps);
            return Ok(());
        }
        if !has_source_maps {
            self.provide_reputation(present)?;
        }
        if !has_set {
            let set = match old_set {
                Some(maps) => maps.renew(self.settings)?,
                None => SharedMaps::create(self.settings)?,
            };
            self.sets.insert(key, set);
        }
        Ok(())
    }

    /// Makes the maps that all interfaces share in the same way, even without an interface: bans need none.
    pub(super) fn provide_common(&mut self, present: &Self) -> Result<(), DatapathError> {
        let is_present = self.generation == present.generation;
        let has_source_maps =
            self.source_maps.is_some() || is_present && present.source_maps.is_some();
        match self.settings.buckets.scope {
            Scope::Host => self.provide(0, present),
            Scope::Interface if has_source_maps => Ok(()),
            Scope::Interface => self.provide_reputation(present),
        }
    }

    fn provide_reputation(&mut self, present: &Self) -> Result<(), DatapathError> {
        self.source_maps = Some(match &present.source_maps {
            Some(maps) => maps.renew(self.settings)?,
            None => SourceMaps::create(self.settings)?,
        });
        Ok(())
    }

    /// Copies source maps from `present`, if the maps differ. Without room, fails before the first write.
    pub(super) fn migrate_reputation(&self, present: &Self) -> Result<(), DatapathError> {
        match (&self.source_maps, &present.source_maps) {
            (Some(new), Some(old)) => new.migrate_from(old, self.settings, monotonic_now()),
            _ => Ok(()),
        }
    }

    /// Replaces its source maps with the ones of `present`; returns the number of bans without room.
    pub(super) fn follow_reputation(&self, present: &Self) -> Result<usize, DatapathError> {
        match (&self.source_maps, &present.source_maps) {
            (Some(own), Some(present)) => own.follow(present, self.settings, monotonic_now()),
            _ => Ok(0),
        }
    }

    /// Adds the sets of `other`, which has the same settings.
    pub(super) fn extend(&mut self, other: Self) {
        self.sets.extend(other.sets);
        self.source_maps = other.source_maps.or_else(|| self.source_maps.take());
    }

    /// The source maps; `None`: no set exists yet.
    pub(super) const fn source_maps(&self) -> Option<&SourceMaps> {
        self.source_maps.as_ref()
    }

    pub(super) const fn source_maps_mut(&mut self) -> Option<&mut SourceMaps> {
        self.source_maps.as_mut()
    }

    /// Pins the maps that are not pinned yet.
    pub(super) fn pin(&self, pins: &Pins) -> Result<(), DatapathError> {
        let pinned = pins.shared_map_owners(self.generation)?;
        for (interface_number, maps) in &self.sets {
            let owner = self.owner(*interface_number);
            if !pinned.contains(&owner) {
                maps.pin(&pins.make_shared_maps(self.generation, &owner)?)?;
            }
        }
        if let Some(maps) = &self.source_maps
            && !pinned.iter().any(|owner| owner == SOURCE_MAPS)
        {
            maps.pin(&pins.make_shared_maps(self.generation, SOURCE_MAPS)?)?;
        }
        Ok(())
    }

    /// The path of a vanished pin of these maps.
    pub(super) fn lost_pin(&self, pins: &Pins) -> Option<PathBuf> {
        let lost_set = |(number, maps): (&u32, &SharedMaps)| {
            let names = maps.all().into_iter().map(|(map, _)| map);
            pins.lost_shared_maps(self.generation, &self.owner(*number), names)
        };
        let of_reputation = || {
            let names = self
                .source_maps
                .as_ref()?
                .all()
                .into_iter()
                .map(|(map, _)| map);
            pins.lost_shared_maps(self.generation, SOURCE_MAPS, names)
        };
        self.sets.iter().find_map(lost_set).or_else(of_reputation)
    }

    /// The path for the pins of an interface's set, if the set is missing; or of the source maps, if they
    /// are.
    pub(super) fn lost_set(&self, pins: &Pins, interface_number: u32) -> Option<PathBuf> {
        let owner = if self.of(interface_number).is_none() {
            self.owner(self.key(interface_number))
        } else if self.source_maps.is_none() {
            SOURCE_MAPS.to_owned()
        } else {
            return None;
        };
        Some(pins.shared_maps(self.generation, &owner))
    }

    /// Pins each set with a lost pin again.
    pub(super) fn pin_again(&self, pins: &Pins) -> Result<(), DatapathError> {
        for (number, maps) in &self.sets {
            let owner = self.owner(*number);
            let names = maps.all().into_iter().map(|(map, _)| map);
            if pins
                .lost_shared_maps(self.generation, &owner, names)
                .is_some()
            {
                maps.pin(&pins.make_shared_maps(self.generation, &owner)?)?;
            }
        }
        if let Some(maps) = &self.source_maps {
            let names = maps.all().into_iter().map(|(map, _)| map);
            if pins
                .lost_shared_maps(self.generation, SOURCE_MAPS, names)
                .is_some()
            {
                maps.pin(&pins.make_shared_maps(self.generation, SOURCE_MAPS)?)?;
            }
        }
        Ok(())
    }

    /// Clears the counters of the interface with the number `interface_number`, and removes its own set,
    /// because another interface may get the number.
    pub(super) fn forget(
        &mut self,
        interface_number: u32,
        pins: Option<&Pins>,
    ) -> Result<(), DatapathError> {
        if self.settings.buckets.scope == Scope::Host {
            return self
                .sets
                .values_mut()
                .try_for_each(|maps| maps.forget_interface(interface_number));
        }
        self.sets.remove(&interface_number);
        if let Some(pins) = pins {
            pins.remove_shared_maps(self.generation, &self.owner(interface_number))?;
        }
        Ok(())
    }

    /// Fills the buckets of units if their numbers stand for other units in `after`.
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
                "too many different rates since the buckets were created: debts at rates that no \
                 limit has any more are forgotten (buckets: {cleared})"
            );
        }
        Ok(())
    }

    /// The units that its buckets count in; `known` may lack some.
    pub(super) fn units(&self, known: &Units) -> Result<Units, DatapathError> {
        Ok(known.as_in_kernel(&self.units_in_kernel()?).0)
    }

    fn units_in_kernel(&self) -> Result<BTreeMap<u32, Unit>, DatapathError> {
        let mut in_kernel = BTreeMap::new();
        for maps in self.sets() {
            // If two sets differ, the number was assigned for a policy that never came into force, so no
            // bucket counts in it.
            for (number, unit) in maps.buckets().read_units()? {
                in_kernel.entry(number).or_insert(unit);
            }
        }
        Ok(in_kernel)
    }

    /// Fills buckets with unusable unit numbers.
    pub(super) fn clean_up(&self, known: &Units) -> Result<(), DatapathError> {
        let (_, of_no_use) = known.as_in_kernel(&self.units_in_kernel()?);
        let of_no_use = of_no_use.into_iter().collect();
        for maps in self.sets() {
            maps.buckets().clear_units(&of_no_use)?;
        }
        Ok(())
    }

    pub(super) fn interface_numbers(&self) -> Vec<u32> {
        self.by_interface()
            .filter_map(|(interface_number, _)| interface_number)
            .collect()
    }

    /// Clears all data of a limit that no policy in force has, because its id goes to another limit.
    pub(super) fn forget_limit(
        &mut self,
        limit: LimitId,
        units: &Units,
    ) -> Result<(), DatapathError> {
        if let Some(source_maps) = &mut self.source_maps {
            source_maps.rates().set(limit, CurrentRate::NONE)?;
            source_maps.key_shares().forget_limit(limit)?;
            let sieves = source_maps.sieves_mut();
            sieves.set_traffic(pressure_of_limit(limit), SieveTraffic::default())?;
        }
        self.sets
            .values_mut()
            .try_for_each(|maps| maps.forget_limit(limit, units))
    }

    /// Drops the shares of a policy's fleet limits, so that these limits fall to their minimum shares. Skips
    /// a limit that `same` also has with the same budget: a share of another budget means nothing here.
    pub(super) fn forget_parts(
        &self,
        policy: &Policy,
        same: Option<&Policy>,
    ) -> Result<(), DatapathError> {
        let Some(source_maps) = &self.source_maps else {
            return Ok(());
        };
        // Another `SharedMapSets` over the same maps may have changed them.
        source_maps.key_shares().read_again();
        for limit in &policy.limits {
            let mut others = same.into_iter().flat_map(|other| &other.limits);
            let other = others.find(|other| other.id == limit.id);
            let is_or_was = limit
                .fleet_nodes
                .or(other.and_then(|other| other.fleet_nodes));
            if is_or_was.is_some() && !other.is_some_and(|other| limit.has_budget_of(other)) {
                // Clear the limit's common share first. Otherwise keys would use it in place of their
                // own.
                source_maps.rates().set(limit.id, CurrentRate::NONE)?;
                source_maps.key_shares().forget_limit(limit.id)?;
            }
        }
        Ok(())
    }

    /// The maps of the interface with the number `interface_number`, if they exist.
    pub(super) fn of(&self, interface_number: u32) -> Option<&SharedMaps> {
        self.sets.get(&self.key(interface_number))
    }

    /// The buckets that all interfaces share; `None`: each interface has its own, or there are none yet.
    pub(super) fn of_host(&self) -> Option<&BucketMaps> {
        let is_shared = self.settings.buckets.scope == Scope::Host;
        let shared = is_shared.then(|| self.of(0)).flatten();
        shared.map(SharedMaps::buckets)
    }

    /// All sets; an interface's own set comes with the interface number.
    pub(super) fn by_interface(&self) -> impl Iterator<Item = (Option<u32>, &SharedMaps)> {
        let is_shared = self.settings.buckets.scope == Scope::Host;
        self.sets
            .iter()
            .map(move |(interface_number, maps)| ((!is_shared).then_some(*interface_number), maps))
    }

    pub(super) fn sets(&self) -> impl Iterator<Item = &SharedMaps> {
        self.sets.values()
    }

    /// The traffic counted under a reason on the interface with the number `interface_number`.
    pub(super) fn reason_traffic(
        &self,
        interface_number: u32,
        reason: Reason,
    ) -> Result<Traffic, DatapathError> {
        self.of(interface_number)
            .map_or(Ok(Traffic::default()), |maps| {
                maps.reason_traffic(interface_number, reason)
            })
    }

    /// The traffic counted for a limit on all interfaces.
    pub(super) fn limit_traffic(&self, limit: LimitId) -> Result<LimitTraffic, DatapathError> {
        let mut total = LimitTraffic::default();
        for maps in self.sets() {
            total += maps.limit_traffic(limit)?;
        }
        Ok(total)
    }

    /// The traffic that each CPU counted for a limit on all interfaces, in CPU order.
    pub(super) fn limit_traffic_by_cpu(
        &self,
        limit: LimitId,
    ) -> Result<Vec<LimitTraffic>, DatapathError> {
        let mut totals: Vec<LimitTraffic> = Vec::new();
        for maps in self.sets() {
            let of_cpus = maps.limit_traffic_by_cpu(limit)?;
            totals.resize(totals.len().max(of_cpus.len()), LimitTraffic::default());
            for (total, of_cpu) in totals.iter_mut().zip(of_cpus) {
                *total += of_cpu;
            }
        }
        Ok(totals)
    }

    /// The traffic of a limit with a reserve by standing of the source, on all interfaces, in the order of
    /// [`Standing::ALL`].
    pub(super) fn standing_traffic(
        &self,
        limit: LimitId,
    ) -> Result<[LimitTraffic; Standing::COUNT], DatapathError> {
        let mut totals = [LimitTraffic::default(); Standing::COUNT];
        for maps in self.sets() {
            for (total, standing) in totals.iter_mut().zip(Standing::ALL) {
                *total += maps.standing_traffic(limit, standing)?;
            }
        }
        Ok(totals)
    }

    /// The answers of that kind sent for a limit on all interfaces.
    pub(super) fn answer_traffic(
        &self,
        limit: LimitId,
        answer: Answer,
    ) -> Result<Traffic, DatapathError> {
        let mut total = Traffic::default();
        for maps in self.sets() {
            total += maps.answer_traffic(limit, answer)?;
        }
        Ok(total)
    }

    /// The number of buckets that were evicted in debt.
    pub(super) fn lossy_evictions(&self) -> Result<u64, DatapathError> {
        self.sets().map(SharedMaps::lossy_evictions).sum()
    }

    pub(super) fn offenders(&self) -> Result<OffenderRecords, DatapathError> {
        let mut all = OffenderRecords::default();
        for maps in self.sets() {
            all.add(maps.offenders().read()?);
        }
        Ok(all)
    }

    const fn key(&self, interface_number: u32) -> u32 {
        match self.settings.buckets.scope {
            Scope::Host => 0,
            Scope::Interface => interface_number,
        }
    }

    fn owner(&self, key: u32) -> String {
        match self.settings.buckets.scope {
            Scope::Host => HOST.to_owned(),
            Scope::Interface => key.to_string(),
        }
    }
}
