//! A host without a kernel: buckets by the core's arithmetic, and a clock that tests set.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, HashSet},
};

use limiter_common::{
    key::BucketKey,
    limit::LimitId,
    strategy::gcra::{Gcra, KeyShare, Parts, ShareWord},
};
use limiter_datapath::kernel::DatapathError;

use super::lever::{Host, Lever};

/// A host with the buckets of one limit.
pub(super) struct Model {
    whole: Gcra,
    floor: Parts,
    pub(super) now_ns: Cell<u64>,
    limit: Cell<ShareWord>,
    owners: RefCell<Shares>,
    /// When buckets will be full, in ticks.
    tats: RefCell<HashMap<BucketKey, u64>>,
    wanting: RefCell<HashSet<BucketKey>>,
    waits: Cell<u64>,
    sets: Cell<u64>,
}

/// The words of owners, by number.
#[derive(Default)]
struct Shares {
    numbers: HashMap<BucketKey, u32>,
    by_number: Vec<Option<(BucketKey, KeyShare)>>,
    free: Vec<u32>,
}

impl Shares {
    fn get(&self, owner: &BucketKey) -> Option<KeyShare> {
        let number = *self.numbers.get(owner)?;
        self.by_number[number as usize].map(|(_, share)| share)
    }

    fn get_mut(&mut self, owner: &BucketKey) -> Option<&mut KeyShare> {
        let number = *self.numbers.get(owner)?;
        let (_, share) = self.by_number[number as usize].as_mut()?;
        Some(share)
    }

    fn set(&mut self, owner: &BucketKey, to: &KeyShare) {
        if let Some(share) = self.get_mut(owner) {
            (share.word, share.after) = (to.word, to.after);
            return;
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.by_number.push(None);
            u32::try_from(self.by_number.len() - 1).unwrap()
        });
        self.numbers.insert(*owner, number);
        let share = KeyShare { wanted: 0, ..*to };
        self.by_number[number as usize] = Some((*owner, share));
    }

    fn remove(&mut self, owner: &BucketKey) {
        if let Some(number) = self.numbers.remove(owner) {
            self.by_number[number as usize] = None;
            self.free.push(number);
        }
    }
}

impl Model {
    /// Makes a host with owners at their floor.
    pub(super) fn new(whole: Gcra, floor: Parts) -> Self {
        Self {
            whole,
            floor,
            now_ns: Cell::new(1_000_000_000),
            limit: Cell::default(),
            owners: RefCell::default(),
            tats: RefCell::default(),
            wanting: RefCell::default(),
            waits: Cell::new(0),
            sets: Cell::new(0),
        }
    }

    pub(super) fn waits(&self) -> u64 {
        self.waits.get()
    }

    pub(super) fn sets(&self) -> u64 {
        self.sets.get()
    }

    pub(super) fn words(&self) -> usize {
        self.owners.borrow().numbers.len()
    }

    pub(super) fn has_word(&self, owner: &BucketKey) -> bool {
        self.owners.borrow().numbers.contains_key(owner)
    }

    /// Resets the counts of calls.
    pub(super) fn forget_counts(&self) {
        self.waits.set(0);
        self.sets.set(0);
    }

    /// Demands so many tokens, and refuses some if the owner has no word.
    pub(super) fn wants(&self, owner: &BucketKey, tokens: u64) {
        match self.owners.borrow_mut().get_mut(owner) {
            Some(share) => share.wanted += tokens,
            None => {
                self.wanting.borrow_mut().insert(*owner);
            }
        }
    }

    /// Sends a packet; returns whether it passes.
    pub(super) fn admit(&self, owner: &BucketKey) -> bool {
        let mut spend = self.whole.spend(self.now(), 1).unwrap();
        spend.increment = self.share(owner).cost(spend.increment);
        let after = spend.apply(self.tat(owner));
        let mut owners = self.owners.borrow_mut();
        match (owners.get_mut(owner), after) {
            (Some(share), _) => share.wanted += 1,
            (None, Err(_)) => {
                self.wanting.borrow_mut().insert(*owner);
            }
            (None, Ok(_)) => {}
        }
        if let Ok(tat) = after {
            self.tats.borrow_mut().insert(*owner, tat);
        }
        after.is_ok()
    }

    /// Returns a bucket's level, in thousandths of a token.
    pub(super) fn millitokens(&self, owner: &BucketKey) -> u64 {
        self.whole
            .tokens(self.credit(owner) * 1_000, self.share(owner))
    }

    /// Returns the current share.
    pub(super) fn share(&self, owner: &BucketKey) -> Parts {
        let now_ns = self.now_ns.get();
        let owners = self.owners.borrow();
        let share = match owners.get(owner) {
            Some(own) => own.in_force(now_ns),
            None => self.limit.get().or(self.floor, now_ns),
        };
        share.or_larger(self.floor)
    }

    fn now(&self) -> u64 {
        self.whole.ticks(self.now_ns.get())
    }

    fn tat(&self, owner: &BucketKey) -> u64 {
        self.tats.borrow().get(owner).copied().unwrap_or(0)
    }

    fn credit(&self, owner: &BucketKey) -> u64 {
        let debt = self.tat(owner).saturating_sub(self.now());
        self.whole.burst_offset.saturating_sub(debt)
    }
}

/// An owner's bucket.
pub(super) struct ModelBucket<'m>(&'m Model, BucketKey);

impl Lever for ModelBucket<'_> {
    fn whole(&self) -> u64 {
        self.0.whole.emission_interval
    }

    fn tokens_in(&self, ns: u64) -> u64 {
        self.0.whole.ticks(ns) / self.0.whole.emission_interval
    }

    fn credit(&self) -> Result<u64, DatapathError> {
        Ok(self.0.credit(&self.1))
    }

    fn charge(&self, ticks: u64) -> Result<(), DatapathError> {
        let from = self.0.tat(&self.1).max(self.0.now());
        self.0.tats.borrow_mut().insert(self.1, from + ticks);
        Ok(())
    }

    fn give(&self, ticks: u64) -> Result<(), DatapathError> {
        let now = self.0.now();
        let from = self.0.tat(&self.1).max(now);
        let tat = from.saturating_sub(ticks).max(now);
        self.0.tats.borrow_mut().insert(self.1, tat);
        Ok(())
    }
}

impl<'m> Host for &'m Model {
    type Lever = ModelBucket<'m>;

    fn now_ns(self) -> u64 {
        self.now_ns.get()
    }

    fn set_limit(self, _limit: LimitId, share: Parts) -> Result<(), DatapathError> {
        self.limit.set(ShareWord::forever(share));
        Ok(())
    }

    fn wanting(self, most: usize) -> Result<Vec<BucketKey>, DatapathError> {
        Ok(self.wanting.borrow_mut().drain().take(most).collect())
    }

    fn each_key_share(
        self,
        mut show: impl FnMut(u32, &BucketKey, KeyShare),
    ) -> Result<(), DatapathError> {
        let owners = self.owners.borrow_mut();
        for (number, owner) in (0..).zip(&owners.by_number) {
            if let Some((owner, share)) = owner {
                show(number, owner, *share);
            }
        }
        Ok(())
    }

    fn numbers_of<'b>(
        self,
        owners: impl Iterator<Item = &'b BucketKey>,
    ) -> Result<Vec<Option<u32>>, DatapathError> {
        let known = self.owners.borrow();
        Ok(owners
            .map(|owner| known.numbers.get(owner).copied())
            .collect())
    }

    fn set_key_shares(self, shares: &[(BucketKey, KeyShare)]) -> Result<(), DatapathError> {
        let mut owners = self.owners.borrow_mut();
        for (owner, share) in shares {
            owners.set(owner, share);
        }
        self.sets.set(self.sets.get() + shares.len() as u64);
        Ok(())
    }

    fn remove_key_shares(self, owners: &[BucketKey]) -> Result<(), DatapathError> {
        let mut own = self.owners.borrow_mut();
        for owner in owners {
            own.remove(owner);
        }
        Ok(())
    }

    fn wait(self) -> Result<(), DatapathError> {
        self.waits.set(self.waits.get() + 1);
        Ok(())
    }

    fn lever(self, owner: &BucketKey) -> Option<ModelBucket<'m>> {
        Some(ModelBucket(self, *owner))
    }
}
