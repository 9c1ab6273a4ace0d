//! Finding buckets, and changing them by orders.

use std::hint;

use limiter_common::{
    bucket::{self, Bucket, Updated},
    limit::LimitId,
    owner::BucketKey,
    strategy::Spend,
    table::{self, LOCKED, Line as _, Order, OrderKind, WAYS},
    unit::{KnownUnits as _, MAX_UNITS, Unit},
};
use limiter_policy::{config::Store, policy::Units};

use super::{BucketMaps, DatapathError, orders::Ended};

/// How often a bucket that packets keep changing is tried to be changed: who has told somebody to
/// forgive has time.
const ATTEMPTS: u32 = 32 * bucket::ATTEMPTS;

/// Where a bucket is, in the words of both stores, and in which unit it is to count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    /// Of the hash map only.
    key: BucketKey,
    /// Of the table only.
    line: u32,
    /// Of the hash map the number of the unit alone.
    name: u64,
}

impl Spot {
    /// In a line of the table, under that name.
    pub(super) const fn in_line(line: u32, name: u64) -> Self {
        Self {
            key: BucketKey::NONE,
            line,
            name,
        }
    }

    /// In the hash map, counting in the unit of that number.
    pub(super) fn in_hash(key: BucketKey, unit: u32) -> Self {
        Self {
            key,
            line: 0,
            name: unit.into(),
        }
    }

    /// The same bucket in another unit.
    pub(super) fn in_unit(self, unit: u32) -> Self {
        let name = self.name & !u64::from(MAX_UNITS - 1) | u64::from(unit);
        Self { name, ..self }
    }

    /// An order that means it.
    pub(super) const fn order(&self) -> Order {
        Order {
            key: self.key,
            name: self.name,
            spend: Spend::NONE,
            seen: 0,
            now_ns: 0,
            line: self.line,
            way: 0,
            kind: 0,
            reserved: 0,
        }
    }
}

impl BucketMaps {
    /// Where a bucket is, or would be, that counts in the unit of that number.
    pub(super) fn spot(&self, key: &BucketKey, unit: u32) -> Spot {
        match self.settings.buckets.store {
            Store::Table => {
                let (place, limit) = (self.settings.hash_key.place(key), LimitId(key.limit));
                let line = place.line(limit, self.table.count());
                Spot::in_line(line, table::name(place, limit, unit))
            }
            Store::Hash => Spot::in_hash(*key, unit),
        }
    }

    /// Every bucket of the table: the index of its line, its name and its state.
    pub(super) fn in_lines(&self) -> impl Iterator<Item = (u32, u64, u64)> {
        (0..).zip(self.table.all()).flat_map(|(index, line)| {
            let entries = (0..WAYS).filter_map(move |way| table::entry(&line, way));
            entries.map(move |(name, state)| (index, name, state))
        })
    }

    /// What is stored in a spot, in whatever unit; `None`: there is none.
    fn stored(&self, spot: &Spot) -> Result<Option<Bucket>, DatapathError> {
        for _ in 0..ATTEMPTS {
            let found = match self.settings.buckets.store {
                Store::Table => self.table.get(spot.line).and_then(|line| {
                    let mut ways = 0..WAYS;
                    let way = ways.find(|way| table::is_same_bucket(line.name(*way), spot.name))?;
                    let (name, state) = (line.name(way), line.state(way));
                    // The name again: the state must not be another bucket's.
                    let is_whole = line.name(way) == name;
                    Some(Bucket {
                        unit: table::unit_of(name),
                        state: if is_whole { state } else { LOCKED },
                    })
                }),
                Store::Hash => self.bucket(&spot.key)?,
            };
            match found {
                // Just being put in or exchanged.
                Some(Bucket { state: LOCKED, .. }) => hint::spin_loop(),
                found => return Ok(found),
            }
        }
        Err(DatapathError::Contended)
    }

    /// The state of the bucket in a spot, in the spot's unit; 0 where there is none.
    pub(super) fn state(&self, spot: &Spot, at: &At<'_>) -> Result<u64, DatapathError> {
        let unit = table::unit_of(spot.name);
        let stored = self.stored(spot)?;
        Ok(stored.map_or(0, |bucket| at.units.state(bucket, unit, at.now_ns)))
    }

    /// Has a bucket, which is full if it is not there, go from the state that it is in to the one
    /// that `wanted` tells, however often packets come between.
    pub(super) fn alter(
        &self,
        spot: &Spot,
        at: &At<'_>,
        wanted: impl Fn(u64) -> u64,
    ) -> Result<Ended, DatapathError> {
        repeat(|| {
            let seen = self.state(spot, at)?;
            // One that is there in another unit may decline, and counts in this one then.
            self.swap(spot, at, seen, wanted(seen))
        })
    }

    /// Has a bucket go from one state to another, if it is in the first one. Where it has to be put
    /// in, one that would be full first gives way to it.
    pub(super) fn swap(
        &self,
        spot: &Spot,
        at: &At<'_>,
        seen: u64,
        wanted: u64,
    ) -> Result<Ended, DatapathError> {
        let kind = if wanted == FULL {
            // A full bucket need not be there.
            OrderKind::SpendIfThere
        } else {
            OrderKind::Spend
        };
        self.order(kind, spot, Spend::swap(seen, wanted), at.now_ns)
    }

    /// Has a bucket do as a spend says, as soon as packets let it.
    pub(super) fn repeat_order(
        &self,
        kind: OrderKind,
        spot: &Spot,
        at: &At<'_>,
        spend: Spend,
    ) -> Result<Ended, DatapathError> {
        repeat(|| self.order(kind, spot, spend, at.now_ns))
    }

    /// Fills a bucket, in whatever unit it counts.
    pub(super) fn clear(&self, spot: &Spot) -> Result<Ended, DatapathError> {
        repeat(|| match self.stored(spot)? {
            Some(bucket) => {
                let found = spot.in_unit(bucket.unit);
                self.order(OrderKind::Clear, &found, Spend::NONE, 0)
            }
            None => Ok(Ended {
                updated: Updated::Stored,
                evicted: false,
            }),
        })
    }
}

/// Tries until packets do not come between any more.
fn repeat(mut order: impl FnMut() -> Result<Ended, DatapathError>) -> Result<Ended, DatapathError> {
    for _ in 0..ATTEMPTS {
        let ended = order()?;
        if !matches!(ended.updated, Updated::Declined | Updated::Contended) {
            return Ok(ended);
        }
    }
    Err(DatapathError::Contended)
}

/// The state of a bucket that is full at any time.
pub(super) const FULL: u64 = 0;

/// The units that buckets count in, at one time.
pub(super) struct At<'a> {
    pub(super) units: &'a Units,
    pub(super) now_ns: u64,
}

impl At<'_> {
    /// Whether the states of a unit are the stamps of moving windows.
    pub(super) fn is_of_stamps(&self, unit: u32) -> bool {
        self.units.unit(unit).is_some_and(Unit::is_of_stamps)
    }
}
