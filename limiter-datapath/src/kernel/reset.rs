//! Gives buckets tokens back, on an operator's order.

use std::{collections::HashSet, net::IpAddr};

use limiter_common::{
    address::Address,
    key::BucketKey,
    limit::{KeyPart, LimitId},
    policy::{classify, parameters_of},
    strategy::Level,
};
use limiter_policy::policy::{RequestedName, SubscriberNumber};

use super::{Datapath, DatapathError, LimitBucket, monotonic_now};

/// A bucket's level before and after tokens were given back.
#[derive(Clone, Copy, Debug)]
pub struct LevelChange {
    /// The bucket before.
    pub before: LimitBucket,
    /// The level now.
    pub after: Level,
}

impl LevelChange {
    /// Whether the bucket was in debt before.
    #[must_use]
    pub const fn was_in_debt(&self) -> bool {
        self.before.level.reset_in_ns > 0
    }
}

impl Datapath {
    /// Gives an address `cost` tokens back in each of its buckets, but at most its debt; `None`: the whole
    /// debt. `limit`: in this limit's buckets only. `to` and `requested_name`: as for
    /// [`Self::limit_buckets`]. The table store loses no concurrent change; the hash store may lose one.
    pub fn give_back(
        &self,
        source: IpAddr,
        to: Option<IpAddr>,
        requested_name: Option<&RequestedName>,
        limit: Option<LimitId>,
        cost: Option<u64>,
    ) -> Result<Vec<LevelChange>, DatapathError> {
        let wanted = |id| limit.is_none_or(|limit| limit == id);
        let limit_buckets = self.limit_buckets_of(source, to, requested_name, wanted)?;
        self.give_back_to_all(limit_buckets, cost)
    }

    /// Does the same with the buckets that a name has for all sources together.
    pub fn give_back_to_name(
        &self,
        requested_name: &RequestedName,
        limit: Option<LimitId>,
        cost: Option<u64>,
    ) -> Result<Vec<LevelChange>, DatapathError> {
        let wanted = |id| limit.is_none_or(|limit| limit == id);
        let limit_buckets = self.limit_buckets_of_name(requested_name, wanted)?;
        self.give_back_to_all(limit_buckets, cost)
    }

    fn give_back_to_all(
        &self,
        limit_buckets: Vec<LimitBucket>,
        cost: Option<u64>,
    ) -> Result<Vec<LevelChange>, DatapathError> {
        limit_buckets
            .into_iter()
            .map(|limit_bucket| self.give_back_to_one(limit_bucket, cost))
            .collect()
    }

    fn give_back_to_one(
        &self,
        before: LimitBucket,
        cost: Option<u64>,
    ) -> Result<LevelChange, DatapathError> {
        let LimitBucket {
            interface,
            key,
            parameters,
            share,
            ..
        } = before;
        let now = monotonic_now();
        let units = &self.policy.units;
        // A token of a share costs more ticks of the whole budget.
        let cost = cost.map(|cost| share.map_or(cost, |share| share.cost(cost)));
        if let Some(maps) = self.shared_maps.of(interface) {
            maps.buckets()
                .give_back(&key, &parameters, cost, units, now)?;
        }
        let after = self.level(interface, &key, (&parameters, share), now)?;
        Ok(LevelChange { before, after })
    }

    /// Fills one limit's buckets for packets from some addresses; returns how many were in debt. If the
    /// limit has a bucket per destination, fills the buckets for all of the host's own addresses.
    pub fn reset_each(
        &self,
        sources: impl IntoIterator<Item = IpAddr>,
        limit: LimitId,
    ) -> Result<u64, DatapathError> {
        // Many addresses may share a bucket.
        let mut done = HashSet::<(u32, BucketKey)>::new();
        let mut count = 0;
        for source in sources {
            for limit_bucket in self.limit_buckets_of(source, None, None, |id| id == limit)? {
                let bucket = (limit_bucket.interface, limit_bucket.key);
                if done.insert(bucket) && self.give_back_to_one(limit_bucket, None)?.was_in_debt() {
                    count += 1;
                }
            }
        }
        Ok(count)
    }

    /// Fills the chosen buckets of the hash store; returns how many were in debt.
    pub fn reset_keys(&self, chosen: impl Fn(&BucketKey) -> bool) -> Result<u64, DatapathError> {
        let now = monotonic_now();
        let sets = self.shared_maps.sets();
        sets.map(|maps| maps.buckets().reset_keys(&chosen, &self.policy.units, now))
            .sum()
    }

    /// Fills all keys' buckets, of all limits or of one; returns how many were in debt.
    pub fn reset_all(&self, limit: Option<LimitId>) -> Result<u64, DatapathError> {
        let now = monotonic_now();
        let sets = self.shared_maps.sets();
        sets.map(|maps| maps.buckets().reset_all(limit, &self.policy.units, now))
            .sum()
    }

    /// Fills the buckets that belong to the interface itself, because another interface may get its number.
    pub(super) fn reset_interface(&self, interface: u32) -> Result<(), DatapathError> {
        let Some(maps) = self.shared_maps.of(interface) else {
            return Ok(());
        };
        let (units, now) = (&self.policy.units, monotonic_now());
        let limits = (0..).zip(&self.manifest.policy.limits);
        for (limit_index, limit) in
            limits.filter(|(_, limit)| limit.id_format.key_part() == Some(KeyPart::Interface))
        {
            // Such a limit has the same parameters in every class that it applies to.
            let mut classes = self.policy.classes.iter();
            let class = classes.find(|class| class.applies & (1 << limit_index) != 0);
            if let Some(parameters) =
                class.and_then(|class| parameters_of(&self.policy, class, limit_index))
            {
                let key = BucketKey::of_interface(limit.id, interface);
                maps.buckets()
                    .give_back(&key, parameters, None, units, now)?;
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
