//! Classes: the distinct things that a policy has for source addresses.

use std::collections::{BTreeMap, HashMap};

use limiter_common::{
    address::Family,
    gcra::Gcra,
    policy::{Class, DEFAULT_CLASS_V4, DEFAULT_CLASS_V6},
};

use super::{
    index,
    slots::{Slots, bit},
};
use crate::policy::SubscriberNumber;

/// What the prefixes around an address say of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Settings {
    pub(super) subscriber: Option<SubscriberNumber>,
    /// The slots of limits and their parameters, in the order of the slot.
    pub(super) overrides: Vec<(u32, Gcra)>,
}

impl Settings {
    /// Overrides a limit, in place of what an outer prefix said.
    pub(super) fn set(&mut self, slot: u32, gcra: Gcra) {
        match self
            .overrides
            .binary_search_by_key(&slot, |(slot, _)| *slot)
        {
            Ok(place) => self.overrides[place].1 = gcra,
            Err(place) => self.overrides.insert(place, (slot, gcra)),
        }
    }
}

/// The classes that were made so far.
pub(super) struct Classes {
    slots: Slots,
    of_subscribers: BTreeMap<SubscriberNumber, Vec<(u32, Gcra)>>,
    table: Vec<Class>,
    /// The limits' defaults, and behind them the overrides.
    rates: Vec<Gcra>,
    known_v4: HashMap<Settings, u32>,
    known_v6: HashMap<Settings, u32>,
}

impl Classes {
    pub(super) fn new(slots: Slots, defaults: Vec<Gcra>) -> Self {
        let mut classes = Self {
            slots,
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
        gcra: Gcra,
    ) {
        let overrides = self.of_subscribers.entry(subscriber).or_default();
        overrides.push((slot, gcra));
    }

    /// The class of the addresses of a family with these settings.
    pub(super) fn of(&mut self, family: Family, settings: Settings) -> u32 {
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
        for (slot, gcra) in of_subscriber.into_iter().flatten() {
            all.set(*slot, *gcra);
        }
        let overridden = all
            .overrides
            .iter()
            .fold(0, |set, (slot, _)| set | bit(*slot));
        self.table.push(Class {
            applies: self
                .slots
                .applying(family, overridden, all.subscriber.is_some()),
            overridden,
            subscriber: all.subscriber.unwrap_or(0),
            first_override: index(self.rates.len()),
            standing: 0,
        });
        self.rates
            .extend(all.overrides.iter().map(|(_, gcra)| *gcra));
        class
    }

    /// The classes, and the parameters of the limits' defaults and of the classes' overrides.
    pub(super) fn into_tables(self) -> (Vec<Class>, Vec<Gcra>) {
        (self.table, self.rates)
    }
}
