//! The hot owners, indexed by the number of their word in the kernel. The kernel lists all words in that
//! order, so a poll needs no look-ups by key.

use std::collections::{BTreeMap, HashMap};

use limiter_common::key::BucketKey;
use limiter_fleet::LimitName;
use limiter_policy::policy::MOST_KEYS;

use super::hot::Hot;

#[derive(Default)]
pub(super) struct Owners {
    by_number: Vec<Option<Hot>>,
    numbers: HashMap<BucketKey, u32>,
    counts: BTreeMap<LimitName, u64>,
}

impl Owners {
    pub(super) fn count(&self) -> usize {
        self.numbers.len()
    }

    pub(super) fn count_of(&self, limit: LimitName) -> u64 {
        self.counts.get(&limit).copied().unwrap_or_default()
    }

    /// Returns the number of an owner; `None`: it is not hot.
    pub(super) fn number_of(&self, key: &BucketKey) -> Option<u32> {
        self.numbers.get(key).copied()
    }

    pub(super) fn get(&self, key: &BucketKey) -> Option<&Hot> {
        let number = self.number_of(key)? as usize;
        self.by_number.get(number)?.as_ref()
    }

    pub(super) fn at(&mut self, number: u32) -> Option<&mut Hot> {
        self.by_number.get_mut(number as usize)?.as_mut()
    }

    /// Adds an owner, and returns the one that had the number.
    pub(super) fn put(&mut self, number: u32, owner: Hot) -> Option<Hot> {
        if number >= MOST_KEYS {
            // The kernel's numbers are below this.
            return Some(owner);
        }
        let before = self.take(number);
        let length = self.by_number.len().max(number as usize + 1);
        self.by_number.resize_with(length, || None);
        self.numbers.insert(owner.key, number);
        *self.counts.entry(owner.budget.limit).or_default() += 1;
        self.by_number[number as usize] = Some(owner);
        before
    }

    /// Removes the owners that satisfy `holds`.
    pub(super) fn take_if(&mut self, mut holds: impl FnMut(&Hot) -> bool) -> Vec<Hot> {
        let numbered = (0..).zip(&self.by_number);
        let found = numbered.filter(|(_, owner)| owner.as_ref().is_some_and(&mut holds));
        let found: Vec<u32> = found.map(|(number, _)| number).collect();
        let taken = found.into_iter().filter_map(|number| self.take(number));
        taken.collect()
    }

    fn take(&mut self, number: u32) -> Option<Hot> {
        let owner = self.by_number.get_mut(number as usize)?.take()?;
        self.numbers.remove(&owner.key);
        if let Some(count) = self.counts.get_mut(&owner.budget.limit) {
            *count -= 1;
        }
        Some(owner)
    }
}
