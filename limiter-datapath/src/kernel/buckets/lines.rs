//! Finds buckets in either store, and changes them by orders.

use std::hint;

use limiter_common::{
    bucket::{self, Bucket, UpdateOutcome},
    key::BucketKey,
    limit::LimitId,
    strategy::Spend,
    table::{self, LOCKED, Line as _, Order, OrderKind, WAYS},
    unit::{Unit, UnitTable as _},
};
use limiter_policy::{config::Store, policy::Units};

use super::{BucketMaps, DatapathError, location::BucketLocation, orders::OrderOutcome};

/// The maximum number of attempts to change a bucket that packets keep changing. Many more than a
/// packet makes: an operator can wait.
const ATTEMPTS: u32 = 32 * bucket::ATTEMPTS;

impl BucketMaps {
    /// The location of a bucket that counts in the unit with the number `unit`, whether or not it
    /// exists.
    pub(super) fn location(&self, key: &BucketKey, unit: u32) -> BucketLocation {
        match self.settings.buckets.store {
            Store::Table => {
                let (hash, limit) = (self.settings.hash_key.key_hash(key), LimitId(key.limit));
                let line = hash.line(limit, self.table.count());
                BucketLocation::in_line(line, table::fingerprint(hash, limit, unit))
            }
            Store::Hash => BucketLocation::in_hash(*key, unit),
        }
    }

    /// Every bucket of the table: the index of its line, its fingerprint and its state.
    pub(super) fn in_lines(&self) -> impl Iterator<Item = (u32, u64, u64)> {
        (0..).zip(self.table.all()).flat_map(|(index, line)| {
            let entries = (0..WAYS).filter_map(move |way| table::entry(&line, way));
            entries.map(move |(fingerprint, state)| (index, fingerprint, state))
        })
    }

    /// The bucket stored at a location, in any unit; `None`: the location is empty.
    fn stored(&self, location: &BucketLocation) -> Result<Option<Bucket>, DatapathError> {
        for _ in 0..ATTEMPTS {
            let found = match self.settings.buckets.store {
                Store::Table => self.table.get(location.line).and_then(|line| {
                    let mut ways = 0..WAYS;
                    let way = ways.find(|way| {
                        table::is_same_bucket(line.fingerprint(*way), location.fingerprint)
                    })?;
                    let (fingerprint, state) = (line.fingerprint(way), line.state(way));
                    // The second read detects that another bucket has taken the slot, and with it
                    // the state.
                    let is_whole = line.fingerprint(way) == fingerprint;
                    Some(Bucket {
                        unit: table::unit_of(fingerprint),
                        state: if is_whole { state } else { LOCKED },
                    })
                }),
                Store::Hash => self.bucket(&location.key)?,
            };
            match found {
                // A program is inserting or exchanging the bucket.
                Some(Bucket { state: LOCKED, .. }) => hint::spin_loop(),
                found => return Ok(found),
            }
        }
        Err(DatapathError::Contended)
    }

    /// The state of the bucket at a location, in the location's unit; 0 if the bucket is missing.
    pub(super) fn state(
        &self,
        location: &BucketLocation,
        at: &TimedUnits<'_>,
    ) -> Result<u64, DatapathError> {
        let unit = table::unit_of(location.fingerprint);
        let stored = self.stored(location)?;
        Ok(stored.map_or(0, |bucket| at.units.state(bucket, unit, at.now_ns)))
    }

    /// Changes a bucket from its state to the state that `wanted` returns. A missing bucket counts
    /// as full. Repeats if packets change the bucket in between.
    pub(super) fn alter(
        &self,
        location: &BucketLocation,
        at: &TimedUnits<'_>,
        wanted: impl Fn(u64) -> u64,
    ) -> Result<OrderOutcome, DatapathError> {
        repeat(|| {
            let seen = self.state(location, at)?;
            // The order may be declined because the bucket counts in another unit; it counts in
            // this unit afterwards.
            self.swap(location, at, seen, wanted(seen))
        })
    }

    /// Changes a bucket from the state `seen` to `wanted`. Does nothing if the bucket has another
    /// state. An insertion evicts the bucket that would be full first.
    pub(super) fn swap(
        &self,
        location: &BucketLocation,
        at: &TimedUnits<'_>,
        seen: u64,
        wanted: u64,
    ) -> Result<OrderOutcome, DatapathError> {
        self.carry_out(&Order {
            kind: OrderKind::Swap as u32,
            seen,
            wanted,
            now_ns: at.now_ns,
            ..location.order()
        })
    }

    /// Applies a spend to a bucket; repeats if packets change it in between.
    pub(super) fn repeat_order(
        &self,
        kind: OrderKind,
        location: &BucketLocation,
        at: &TimedUnits<'_>,
        spend: Spend,
    ) -> Result<OrderOutcome, DatapathError> {
        repeat(|| self.order(kind, location, spend, at.now_ns))
    }

    /// Fills a bucket, regardless of its unit.
    pub(super) fn clear(&self, location: &BucketLocation) -> Result<OrderOutcome, DatapathError> {
        repeat(|| match self.stored(location)? {
            Some(bucket) => {
                let found = location.in_unit(bucket.unit);
                self.order(OrderKind::Clear, &found, Spend::NONE, 0)
            }
            None => Ok(OrderOutcome {
                updated: UpdateOutcome::Stored,
                evicted: false,
            }),
        })
    }
}

/// Repeats an order until no packet interferes.
fn repeat(
    mut order: impl FnMut() -> Result<OrderOutcome, DatapathError>,
) -> Result<OrderOutcome, DatapathError> {
    for _ in 0..ATTEMPTS {
        let ended = order()?;
        if !matches!(
            ended.updated,
            UpdateOutcome::Declined | UpdateOutcome::Contended
        ) {
            return Ok(ended);
        }
    }
    Err(DatapathError::Contended)
}

/// The state of a bucket that is full at any time.
pub(super) const FULL: u64 = 0;

pub(super) struct TimedUnits<'a> {
    pub(super) units: &'a Units,
    pub(super) now_ns: u64,
}

impl TimedUnits<'_> {
    pub(super) fn is_of_stamps(&self, unit: u32) -> bool {
        self.units.unit(unit).is_some_and(Unit::is_of_stamps)
    }
}
