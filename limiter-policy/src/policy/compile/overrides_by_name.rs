//! Compiles overrides by name: the overrides that hold for a name, and the sources they hold for.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use limiter_common::{address::Family, limit::KeyPart, policy::Child, strategy::Parameters};

use super::{
    CompileError,
    classes::{Classes, Numbering, Settings},
    index::{IndexTables, Range},
    rates::Rates,
    sources::{Block, PrefixSetting, ranges_of_families},
};
use crate::policy::{Mode, OverriddenName, OverrideId, Policy, SubscriberNumber};

pub(super) type NamedKey = (KeyPart, OverriddenName);

/// The overrides by name.
pub(super) struct OverridesByName<'p> {
    policy: &'p Policy,
    by_key: HashMap<NamedKey, KeyOverrides>,
    /// The prefixes of subscribers, if any of these overrides needs them; outer prefixes before inner ones.
    subscribers: Vec<(Block, SubscriberNumber)>,
    /// The index of the compiled ranges, by keys.
    known: HashMap<Vec<NamedKey>, u32>,
    /// The number of ranges compiled so far.
    pub(super) ranges: usize,
}

#[derive(Clone, Debug, Default)]
struct KeyOverrides {
    /// Overrides for all sources, by limit index.
    alone: Vec<(u32, Parameters)>,
    /// Overrides for some sources, with the limit index.
    of_sources: Vec<(OverrideId, u32, Parameters)>,
}

impl<'p> OverridesByName<'p> {
    pub(super) fn new(policy: &'p Policy, rates: &mut Rates) -> Result<Self, CompileError> {
        let mut by_key: HashMap<NamedKey, KeyOverrides> = HashMap::new();
        let mut are_for_subscribers = false;
        let limits = (0..).zip(&policy.limits);
        for (limit_index, limit) in limits.filter(|(_, limit)| limit.mode != Mode::Off) {
            for other in &limit.overrides {
                let (Some(key_part), Some(name)) = (limit.key_part(), other.id.name()) else {
                    continue;
                };
                let parameters = rates.parameters(limit, other.rate)?;
                let said = by_key.entry((key_part, name.clone())).or_default();
                match other.id.source() {
                    None => said.alone.push((limit_index, parameters)),
                    Some(source) => {
                        are_for_subscribers |= matches!(source, OverrideId::Subscriber(_));
                        said.of_sources.push((source, limit_index, parameters));
                    }
                }
            }
        }
        let mut subscribers = Vec::new();
        if are_for_subscribers {
            for (number, prefixes) in &policy.subscribers {
                let blocks = prefixes.iter().map(|prefix| Block::of(*prefix));
                subscribers.extend(blocks.map(|block| (block, *number)));
            }
            subscribers.sort_unstable_by_key(|(block, _)| order(block));
        }
        Ok(Self {
            policy,
            by_key,
            subscribers,
            known: HashMap::new(),
            ranges: 0,
        })
    }

    /// Returns the names of keys of one kind, sorted.
    pub(super) fn names(&self, key_part: KeyPart) -> Vec<OverriddenName> {
        let keys = self.by_key.keys();
        let of_kind = keys.filter(|(of, _)| *of == key_part);
        let mut names: Vec<_> = of_kind.map(|(_, name)| name.clone()).collect();
        names.sort_unstable();
        names
    }

    /// Returns the position of the overrides for packets charged to these keys (each of another kind), in
    /// the form of [`NameSlot::overrides`](limiter_common::policy::NameSlot::overrides).
    pub(super) fn of(
        &mut self,
        keys: impl IntoIterator<Item = NamedKey>,
        classes: &mut Classes,
        indexed: &mut IndexTables,
    ) -> u32 {
        let keys = keys.into_iter();
        let keys: Vec<NamedKey> = keys.filter(|key| self.by_key.contains_key(key)).collect();
        if keys.is_empty() {
            return 0;
        }
        if let Some(found) = self.known.get(&keys) {
            return *found;
        }
        let mut alone = Settings::default();
        let mut of_sources = Vec::new();
        for said in keys.iter().filter_map(|key| self.by_key.get(key)) {
            for (limit_index, parameters) in &said.alone {
                alone.set(*limit_index, *parameters);
            }
            of_sources.extend_from_slice(&said.of_sources);
        }
        let starts = self.starts(&alone, of_sources, classes, indexed);
        let found = indexed.add_pair(starts) + 1;
        self.known.insert(keys, found);
        found
    }

    /// Returns the starts of the look-ups by source, one for each family.
    fn starts(
        &mut self,
        alone: &Settings,
        of_sources: Vec<(OverrideId, u32, Parameters)>,
        classes: &mut Classes,
        indexed: &mut IndexTables,
    ) -> [Child; 2] {
        let mut of_subscribers: BTreeMap<SubscriberNumber, Vec<(u32, Parameters)>> =
            BTreeMap::new();
        let mut prefix_settings = Vec::new();
        for (source, limit_index, parameters) in of_sources {
            match source {
                OverrideId::Prefix(prefix) => prefix_settings.push((
                    Block::of(prefix),
                    PrefixSetting::Override(limit_index, parameters),
                )),
                OverrideId::Subscriber(number) => {
                    let overrides = of_subscribers.entry(number).or_default();
                    overrides.push((limit_index, parameters));
                }
                // `source()` strips the name.
                OverrideId::Name(_)
                | OverrideId::PrefixAndName(..)
                | OverrideId::SubscriberAndName(..) => {}
            }
        }
        let settings = self.around(of_subscribers.keys().copied()).into_iter();
        prefix_settings.extend(settings.map(|at| {
            let (block, number) = self.subscribers[at];
            (block, PrefixSetting::Subscriber(number))
        }));
        let mut numbering = NameClasses {
            classes,
            of_subscribers,
        };
        let ranges = ranges_of_families(prefix_settings, alone, &mut numbering);
        self.ranges += ranges.iter().map(Vec::len).sum::<usize>();
        let everywhere = numbering.of(Family::V4, alone.clone());
        ranges.map(|ranges: Vec<Range>| {
            if ranges.is_empty() {
                Child::value(everywhere)
            } else {
                indexed.add(&ranges)
            }
        })
    }

    /// Returns the prefixes of these subscribers, and all subscribers' prefixes inside them, which hide the
    /// outer overrides.
    fn around(&self, numbers: impl Iterator<Item = SubscriberNumber>) -> BTreeSet<usize> {
        let prefixes = numbers.filter_map(|number| self.policy.subscribers.get(&number));
        let blocks = prefixes.flatten().map(|prefix| Block::of(*prefix));
        let ranges = blocks.map(|block| {
            let last = (block.family as u64, block.last);
            let first = self
                .subscribers
                .partition_point(|(other, _)| order(other) < order(&block));
            let end = self
                .subscribers
                .partition_point(|(other, _)| (other.family as u64, other.first) <= last);
            first..end
        });
        ranges.flatten().collect()
    }
}

/// A sort key: by family and first address, outer prefixes before inner ones.
fn order(block: &Block) -> (u64, u128, u128) {
    (block.family as u64, block.first, u128::MAX - block.last)
}

/// The classes of the sources that ask for one name.
struct NameClasses<'c> {
    classes: &'c mut Classes,
    of_subscribers: BTreeMap<SubscriberNumber, Vec<(u32, Parameters)>>,
}

impl Numbering for NameClasses<'_> {
    fn of(&mut self, _: Family, mut settings: Settings) -> u32 {
        let subscriber = settings.subscriber;
        let overrides = subscriber.and_then(|number| self.of_subscribers.get(&number));
        for (limit_index, parameters) in overrides.into_iter().flatten() {
            settings.set(*limit_index, *parameters);
        }
        self.classes.of_overrides(settings.overrides)
    }
}
