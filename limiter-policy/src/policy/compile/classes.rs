//! Classes: the distinct things that a policy has for source addresses.

use std::collections::{BTreeMap, HashMap};

use limiter_common::{
    address::Family,
    policy::{Class, DEFAULT_CLASS_V4, DEFAULT_CLASS_V6},
    strategy::Budget,
};

use super::{
    index,
    listed::Listed,
    masks::Sets,
    slots::{Slots, bit},
};
use crate::policy::SubscriberNumber;

/// What the prefixes around an address say of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Settings {
    pub(super) subscriber: Option<SubscriberNumber>,
    /// The slots of limits and their parameters, in the order of the slot.
    pub(super) overrides: Vec<(u32, Budget)>,
    pub(super) listed: Listed,
}

impl Settings {
    /// Overrides a limit, in place of what an outer prefix said.
    pub(super) fn set(&mut self, slot: u32, budget: Budget) {
        match self
            .overrides
            .binary_search_by_key(&slot, |(slot, _)| *slot)
        {
            Ok(place) => self.overrides[place].1 = budget,
            Err(place) => self.overrides.insert(place, (slot, budget)),
        }
    }
}

/// The classes that were made so far.
pub(super) struct Classes {
    slots: Slots,
    sets: Sets,
    of_subscribers: BTreeMap<SubscriberNumber, Vec<(u32, Budget)>>,
    table: Vec<Class>,
    /// The limits' defaults, and behind them the overrides.
    rates: Vec<Budget>,
    known_v4: HashMap<Settings, u32>,
    known_v6: HashMap<Settings, u32>,
}

impl Classes {
    pub(super) fn new(slots: Slots, sets: Sets, defaults: Vec<Budget>) -> Self {
        let mut classes = Self {
            slots,
            sets,
            of_subscribers: BTreeMap::new(),
            table: Vec::new(),
            rates: defaults,
            known_v4: HashMap::new(),
            known_v6: HashMap::new(),
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

    /// Overrides a limit for a subscriber, before any class of the subscriber's is made.
    pub(super) fn override_subscriber(
        &mut self,
        subscriber: SubscriberNumber,
        slot: u32,
        budget: Budget,
    ) {
        let overrides = self.of_subscribers.entry(subscriber).or_default();
        overrides.push((slot, budget));
    }

    /// The class of the addresses of a family with these settings.
    pub(super) fn of(&mut self, family: Family, mut settings: Settings) -> u32 {
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
        for (slot, budget) in of_subscriber.into_iter().flatten() {
            all.set(*slot, *budget);
        }
        let overridden = all
            .overrides
            .iter()
            .fold(0, |set, (slot, _)| set | bit(*slot));
        // What a limit blocks it needs no parameters for.
        let (excluding, blocking) = (all.listed.excluding(), all.listed.blocking());
        let subscriber = all.subscriber.is_some();
        let applying = self
            .slots
            .applying(family, overridden | blocking, subscriber);
        let applies = applying & !excluding;
        let standing = self.standing(all.listed, applies & blocking);
        self.table.push(Class {
            applies,
            overridden,
            subscriber: all.subscriber.unwrap_or(0),
            first_override: index(self.rates.len()),
            standing,
        });
        self.rates
            .extend(all.overrides.iter().map(|(_, budget)| *budget));
        class
    }

    fn standing(&mut self, listed: Listed, blocking: u64) -> u32 {
        if listed.is_excluded() {
            Class::EXCLUDED
        } else if listed.is_blocked() {
            Class::BLOCKED
        } else if blocking == 0 {
            0
        } else {
            self.sets.place(blocking)
        }
    }

    /// The classes, the parameters of the limits' defaults and of the classes' overrides, and the
    /// sets of limits with those that the classes name.
    pub(super) fn into_tables(self) -> (Vec<Class>, Vec<Budget>, Sets) {
        (self.table, self.rates, self.sets)
    }
}
