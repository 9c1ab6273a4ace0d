//! Classes: the distinct settings that a policy has for source addresses.

use std::collections::{BTreeMap, HashMap};

use limiter_common::{
    address::Family,
    policy::{Class, DEFAULT_CLASS_V4, DEFAULT_CLASS_V6},
    strategy::Parameters,
};

use super::{
    bounds::index,
    limit_sets::{LimitSets, bit},
    list_effect::ListEffect,
    masks::MaskTable,
};
use crate::policy::SubscriberNumber;

/// The combined settings of all prefixes around an address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Settings {
    pub(super) subscriber: Option<SubscriberNumber>,
    /// The indices of limits and their parameters, sorted by limit index.
    pub(super) overrides: Vec<(u32, Parameters)>,
    pub(super) listed: ListEffect,
}

impl Settings {
    /// Overrides a limit. An inner prefix replaces the value of an outer one.
    pub(super) fn set(&mut self, limit_index: u32, parameters: Parameters) {
        match self
            .overrides
            .binary_search_by_key(&limit_index, |(limit_index, _)| *limit_index)
        {
            Ok(at) => self.overrides[at].1 = parameters,
            Err(at) => self.overrides.insert(at, (limit_index, parameters)),
        }
    }
}

pub(super) struct Classes {
    limit_sets: LimitSets,
    sets: MaskTable,
    of_subscribers: BTreeMap<SubscriberNumber, Vec<(u32, Parameters)>>,
    table: Vec<Class>,
    /// The limits' defaults, followed by the overrides; each with the index of its limit.
    rates: Vec<(u32, Parameters)>,
    known_v4: HashMap<Settings, u32>,
    known_v6: HashMap<Settings, u32>,
    /// The classes with overrides alone, by their overrides.
    known_by_overrides: HashMap<Vec<(u32, Parameters)>, u32>,
}

/// Assigns class numbers to ranges.
pub(super) trait Numbering {
    /// Returns the class of a family's addresses with these settings.
    fn of(&mut self, family: Family, settings: Settings) -> u32;
}

impl Classes {
    pub(super) fn new(limit_sets: LimitSets, sets: MaskTable, defaults: Vec<Parameters>) -> Self {
        let mut classes = Self {
            limit_sets,
            sets,
            of_subscribers: BTreeMap::new(),
            table: Vec::new(),
            rates: (0..).zip(defaults).collect(),
            known_v4: HashMap::new(),
            known_v6: HashMap::new(),
            known_by_overrides: HashMap::new(),
        };
        for (family, default) in [
            (Family::V4, DEFAULT_CLASS_V4),
            (Family::V6, DEFAULT_CLASS_V6),
        ] {
            let class = classes.of(family, Settings::default());
            debug_assert_eq!(class, default, "the first classes that are made");
        }
        classes
    }

    /// Overrides a limit for a subscriber. Call it before any class of the subscriber is made.
    pub(super) fn override_subscriber(
        &mut self,
        subscriber: SubscriberNumber,
        limit_index: u32,
        parameters: Parameters,
    ) {
        let overrides = self.of_subscribers.entry(subscriber).or_default();
        overrides.push((limit_index, parameters));
    }

    /// Returns the class with these overrides (sorted by limit index) and no other settings.
    pub(super) fn of_overrides(&mut self, overrides: Vec<(u32, Parameters)>) -> u32 {
        if overrides.is_empty() {
            // Without overrides, the default class does.
            return DEFAULT_CLASS_V4;
        }
        if let Some(class) = self.known_by_overrides.get(&overrides) {
            return *class;
        }
        let class = index(self.table.len());
        self.table.push(Class {
            overridden: set_of_overridden(&overrides),
            first_override: index(self.rates.len()),
            ..Class::default()
        });
        self.rates.extend(overrides.iter().copied());
        self.known_by_overrides.insert(overrides, class);
        class
    }

    pub(super) const fn sets(&mut self) -> &mut MaskTable {
        &mut self.sets
    }

    fn listing(&mut self, listed: ListEffect, blocking: u64) -> u32 {
        if listed.is_excluded() {
            return Class::EXCLUDED;
        } else if listed.is_blocked() {
            return Class::BLOCKED;
        }
        let blocked = match blocking {
            0 => 0,
            _ => self.sets.index_of(blocking),
        };
        if listed.is_proven() {
            blocked | Class::PROVEN
        } else {
            blocked
        }
    }

    /// Returns the classes, the parameters (the limits' defaults, then the classes' overrides) with the
    /// indices of their limits, and the sets of limits, including the sets that classes refer to.
    pub(super) fn into_tables(self) -> (Vec<Class>, Vec<(u32, Parameters)>, MaskTable) {
        (self.table, self.rates, self.sets)
    }
}

impl Numbering for Classes {
    fn of(&mut self, family: Family, mut settings: Settings) -> u32 {
        if let Some(listed) = settings.listed.settling() {
            settings = Settings {
                listed,
                ..Settings::default()
            };
        }
        let known = match family {
            Family::V4 => &mut self.known_v4,
            Family::V6 => &mut self.known_v6,
        };
        if let Some(class) = known.get(&settings) {
            return *class;
        }
        let class = index(self.table.len());
        known.insert(settings.clone(), class);
        let mut all = settings;
        let of_subscriber = all
            .subscriber
            .and_then(|number| self.of_subscribers.get(&number));
        for (limit_index, parameters) in of_subscriber.into_iter().flatten() {
            all.set(*limit_index, *parameters);
        }
        let overridden = set_of_overridden(&all.overrides);
        // A limit without a rate for an address still applies if it blocks the address.
        let (excluding, blocking) = (all.listed.excluding(), all.listed.blocking());
        let subscriber = all.subscriber.is_some();
        let applying = self
            .limit_sets
            .applying(family, overridden | blocking, subscriber);
        let applies = applying & !excluding;
        let listing = self.listing(all.listed, applies & blocking);
        self.table.push(Class {
            applies,
            overridden,
            subscriber: all.subscriber.unwrap_or(0),
            first_override: index(self.rates.len()),
            listing,
        });
        self.rates.extend(all.overrides);
        class
    }
}

fn set_of_overridden(overrides: &[(u32, Parameters)]) -> u64 {
    let indices = overrides.iter().map(|(limit_index, _)| bit(*limit_index));
    indices.fold(0, |set, bit| set | bit)
}
