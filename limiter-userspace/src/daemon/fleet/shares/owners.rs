//! The hot owners, each by the number of its share in the kernel: which shows all shares in that order, so a look looks for
//! nobody.

use std::collections::{BTreeMap, HashMap};

use limiter_common::owner::BucketKey;
use limiter_fleet::LimitName;
use limiter_policy::policy::MOST_OWNERS;

use super::hot::Hot;

/// The hot owners.
#[derive(Default)]
pub(super) struct Owners {
    by_number: Vec<Option<Hot>>,
    numbers: HashMap<BucketKey, u32>,
    counts: BTreeMap<LimitName, u64>,
}

impl Owners {
    /// Returns how many there are.
    pub(super) fn count(&self) -> usize {
        self.numbers.len()
    }

    /// Returns how many of a limit there are.
    pub(super) fn count_of(&self, limit: LimitName) -> u64 {
        self.counts.get(&limit).copied().unwrap_or_default()
    }

    /// Returns the number of an owner; `None`: it is not hot.
    pub(super) fn number_of(&self, key: &BucketKey) -> Option<u32> {
        self.numbers.get(key).copied()
    }

    /// Returns the owner of a bucket.
    pub(super) fn get(&self, key: &BucketKey) -> Option<&Hot> {
        let number = self.number_of(key)? as usize;
        self.by_number.get(number)?.as_ref()
    }

    /// Returns the owner with that number.
    pub(super) fn at(&mut self, number: u32) -> Option<&mut Hot> {
        self.by_number.get_mut(number as usize)?.as_mut()
    }

    /// Puts an owner in, and takes out that which had the number.
    pub(super) fn put(&mut self, number: u32, owner: Hot) -> Option<Hot> {
        if number >= MOST_OWNERS {
            // No kernel says that.
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

    /// Takes out the owners of which something holds.
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
