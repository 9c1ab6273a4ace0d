//! Giving buckets back what they owe.

use std::{collections::HashSet, net::IpAddr};

use limiter_common::{
    address::Address,
    limit::{LimitId, NumberOf},
    owner::BucketKey,
    policy::{classify, parameters},
    strategy::Level,
};
use limiter_policy::policy::SubscriberNumber;

use super::{Datapath, DatapathError, Holding, monotonic_now};

/// What a bucket held before and after it was given something back.
#[derive(Clone, Copy, Debug)]
pub struct Refilled {
    /// The bucket as it was.
    pub before: Holding,
    /// What it holds now.
    pub after: Level,
}

impl Refilled {
    /// Whether the bucket owed something before.
    #[must_use]
    pub const fn was_in_debt(&self) -> bool {
        self.before.level.reset_in_ns > 0
    }
}

impl Datapath {
    /// Gives an address `cost` tokens back in each of its buckets, all that it owes at most;
    /// `None`: all. `limit`: by this limit only. What changes a bucket meanwhile is not lost in
    /// the table store, and may be in the hash store.
    pub fn refill(
        &self,
        source: IpAddr,
        limit: Option<LimitId>,
        cost: Option<u64>,
    ) -> Result<Vec<Refilled>, DatapathError> {
        let wanted = |id| limit.is_none_or(|limit| limit == id);
        let holdings = self.holdings_of(source, wanted)?;
        holdings
            .into_iter()
            .map(|holding| self.refill_one(holding, cost))
            .collect()
    }

    fn refill_one(&self, before: Holding, cost: Option<u64>) -> Result<Refilled, DatapathError> {
        let Holding {
            interface,
            key,
            budget,
            ..
        } = before;
        let now = monotonic_now();
        let units = &self.policy.units;
        if let Some(maps) = self.state.of(interface) {
            maps.buckets().give_back(&key, &budget, cost, units, now)?;
        }
        let after = self.level(interface, &key, &budget, now)?;
        Ok(Refilled { before, after })
    }

    /// Fills the buckets of one limit for some addresses; returns how many owed something.
    pub fn reset_each(
        &self,
        sources: impl IntoIterator<Item = IpAddr>,
        limit: LimitId,
    ) -> Result<u64, DatapathError> {
        // Many addresses may share a bucket.
        let mut done = HashSet::<(u32, BucketKey)>::new();
        let mut count = 0;
        for source in sources {
            for holding in self.holdings_of(source, |id| id == limit)? {
                let bucket = (holding.interface, holding.key);
                if done.insert(bucket) && self.refill_one(holding, None)?.was_in_debt() {
                    count += 1;
                }
            }
        }
        Ok(count)
    }

    /// Fills the buckets of the hash store that are of some owners and limits; returns how many
    /// owed something.
    pub fn reset_keys(&self, chosen: impl Fn(&BucketKey) -> bool) -> Result<u64, DatapathError> {
        let now = monotonic_now();
        let sets = self.state.sets();
        sets.map(|maps| maps.buckets().reset_keys(&chosen, &self.policy.units, now))
            .sum()
    }

    /// Fills everybody's buckets, of all limits or of one; returns how many owed something.
    pub fn reset_all(&self, limit: Option<LimitId>) -> Result<u64, DatapathError> {
        let now = monotonic_now();
        let sets = self.state.sets();
        sets.map(|maps| maps.buckets().reset_all(limit, &self.policy.units, now))
            .sum()
    }

    /// Fills the buckets that the interface of that number has to itself: another one may get the
    /// number.
    pub(super) fn reset_interface(&self, interface: u32) -> Result<(), DatapathError> {
        let Some(maps) = self.state.of(interface) else {
            return Ok(());
        };
        let (units, now) = (&self.policy.units, monotonic_now());
        let limits = (0..).zip(&self.manifest.policy.limits);
        for (slot, limit) in
            limits.filter(|(_, limit)| limit.id_format.number() == Some(NumberOf::Interface))
        {
            // Such a limit has the same parameters wherever it applies.
            let mut classes = self.policy.classes.iter();
            let class = classes.find(|class| class.applies & (1 << slot) != 0);
            if let Some(budget) = class.and_then(|class| parameters(&self.policy, class, slot)) {
                let key = BucketKey::of_interface(limit.id, interface);
                maps.buckets().give_back(&key, budget, None, units, now)?;
            }
        }
        Ok(())
    }

    /// The subscriber that an address belongs to.
    #[must_use]
    pub fn subscriber_of(&self, source: IpAddr) -> Option<SubscriberNumber> {
        let class = classify(&self.policy, &Address::from(source))?;
        Some(class.subscriber).filter(|number| *number != 0)
    }
}
