//! Puts saved debts back into the kernel's buckets.
//!
//! A table bucket's fingerprint does not give its line in a table of another size. In a smaller
//! table, the line has the same number without the leading bits. In a larger table, the extra bits
//! come from a hash that is not stored, so the bucket goes into every possible line. The unused
//! copies become full after some time and vanish.

use std::{collections::HashMap, iter, ops::AddAssign};

use limiter_common::{
    key::BucketKey,
    table::{self, OrderKind},
    unit::{Unit, UnitTable as _},
};
use limiter_policy::{config::Store, policy::Units};

use super::{BucketMaps, DatapathError, lines::TimedUnits, location::BucketLocation};
use crate::state::{Debts, HashDebt, StoredDebts, TableDebts};

/// The maximum number of lines for one bucket, and so the largest factor by which a table may have
/// grown.
const MOST_COPIES: u32 = 16;

/// The outcome for the buckets in debt. A moving window counts as one bucket; if it is evicted,
/// each of its parts counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestoreCounts {
    /// The number of buckets that owe their saved debt, less the tokens returned since.
    pub restored: u64,
    /// The number of buckets that have become full since.
    pub full: u64,
    /// The number of buckets without room, or with an unknown key.
    pub lost: u64,
}

impl AddAssign for RestoreCounts {
    fn add_assign(&mut self, other: Self) {
        self.restored += other.restored;
        self.full += other.full;
        self.lost += other.lost;
    }
}

/// A bucket that is still in debt.
struct IndebtedBucket<'a, T> {
    bucket: T,
    /// The number of its unit.
    number: u32,
    unit: &'a Unit,
    /// The time until it is full, in nanoseconds.
    full_in_ns: u64,
    /// The bucket's debt as [`Unit::owed`] returns it.
    owed: u64,
}

impl BucketMaps {
    /// Restores debts as they were `passed_ns` before `now_ns`, on top of the present debts.
    /// `units`: the units that buckets count in. A unit that `debts` also has must have the same
    /// number in both.
    ///
    /// Without room for all, the buckets that would be full first are dropped.
    pub fn restore(
        &self,
        debts: &Debts,
        units: &Units,
        now_ns: u64,
        passed_ns: u64,
    ) -> Result<RestoreCounts, DatapathError> {
        let back = RestoreContext {
            units,
            kept: &debts.units,
            now_ns,
            passed_ns,
        };
        match (self.settings.buckets.store, &debts.stored) {
            (Store::Table, StoredDebts::Table(table)) => match self.copies_of(table) {
                Some(copies) => self.lines_to_lines(&back, table, copies),
                None => Ok(all_lost(debts)),
            },
            (Store::Table, StoredDebts::Hash(debts)) => {
                let (owing, restored) = back.owing(of_keys(debts));
                self.add(&back, owing, restored, |key, unit| {
                    iter::once(self.location(&key, unit))
                })
            }
            (Store::Hash, StoredDebts::Hash(debts)) => self.keys_to_keys(&back, debts),
            // The table saves only hashes of keys, and the hash map needs the keys.
            (Store::Hash, StoredDebts::Table(_)) => Ok(all_lost(debts)),
        }
    }

    /// The number of lines that one of these buckets may be in; `None`: the keys are unknown.
    fn copies_of(&self, table: &TableDebts) -> Option<u32> {
        let (old, new) = (table.lines, self.table.count());
        let copies = (new / old.max(1)).max(1);
        let is_known = table.hash_key == self.settings.hash_key && old.is_power_of_two();
        Some(copies).filter(|copies| is_known && *copies <= MOST_COPIES)
    }

    fn lines_to_lines(
        &self,
        back: &RestoreContext<'_>,
        table: &TableDebts,
        copies: u32,
    ) -> Result<RestoreCounts, DatapathError> {
        let (old, new) = (table.lines, self.table.count());
        // In a smaller table, the copies made when the table grew merge again. For every strategy,
        // the debt that lasts longer is the larger number.
        let mut owed = HashMap::with_capacity(table.debts.len());
        for debt in &table.debts {
            let location = (debt.line & (old.min(new) - 1), debt.name);
            let most = owed.entry(location).or_insert(debt.owed);
            *most = debt.owed.max(*most);
        }
        let debts = owed.into_iter();
        let debts = debts.map(|((line, fingerprint), owed)| {
            ((line, fingerprint), table::unit_of(fingerprint), owed)
        });
        let (owing, restored) = back.owing(debts);
        self.add(back, owing, restored, |(line, fingerprint), _| {
            (0..copies).map(move |copy| BucketLocation::in_line(line + copy * old, fingerprint))
        })
    }

    fn keys_to_keys(
        &self,
        back: &RestoreContext<'_>,
        debts: &[HashDebt],
    ) -> Result<RestoreCounts, DatapathError> {
        let (mut owing, mut restored) = back.owing(of_keys(debts));
        let room = self.settings.buckets.capacity as usize;
        let forgotten = owing.len().saturating_sub(room);
        owing.drain(..forgotten);
        let evicted = (forgotten as u64).min(restored.restored);
        restored.restored -= evicted;
        restored.lost += evicted;
        self.add(back, owing, restored, |key, unit| {
            iter::once(BucketLocation::in_hash(key, unit))
        })
    }

    /// Adds each bucket's debt at the locations that `locations` returns.
    fn add<T, S: Iterator<Item = BucketLocation>>(
        &self,
        back: &RestoreContext<'_>,
        owing: Vec<IndebtedBucket<'_, T>>,
        mut restored: RestoreCounts,
        locations: impl Fn(T, u32) -> S,
    ) -> Result<RestoreCounts, DatapathError> {
        let at = TimedUnits {
            units: back.units,
            now_ns: back.now_ns,
        };
        let mut evicted = 0;
        for one in owing {
            for location in locations(one.bucket, one.number) {
                let added = match one.unit.adding(back.now_ns, one.owed) {
                    Some(spend) => self.repeat_order(OrderKind::Spend, &location, &at, spend),
                    None => self.alter(&location, &at, |state| {
                        one.unit.owing(back.now_ns, state, one.owed)
                    }),
                };
                match added {
                    Ok(ended) => evicted += u64::from(ended.evicted),
                    // Packets keep changing the bucket, so it is in use and in the store.
                    Err(DatapathError::Contended) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        let evicted = evicted.min(restored.restored);
        restored.restored -= evicted;
        restored.lost += evicted;
        Ok(restored)
    }
}

fn of_keys(debts: &[HashDebt]) -> impl Iterator<Item = (BucketKey, u32, u64)> {
    let debts = debts.iter();
    debts.map(|debt| (debt.key, debt.unit, debt.owed))
}

fn all_lost(debts: &Debts) -> RestoreCounts {
    RestoreCounts {
        restored: 0,
        full: 0,
        lost: debts.count(),
    }
}

/// The parameters of a restore.
struct RestoreContext<'a> {
    units: &'a Units,
    kept: &'a Units,
    now_ns: u64,
    passed_ns: u64,
}

impl RestoreContext<'_> {
    /// The buckets still in debt, in the order in which they become full. The longest debts come
    /// last, so an insertion cannot evict them for shorter ones.
    fn owing<T>(
        &self,
        debts: impl Iterator<Item = (T, u32, u64)>,
    ) -> (Vec<IndebtedBucket<'_, T>>, RestoreCounts) {
        let mut restored = RestoreCounts::default();
        let mut owing = Vec::new();
        for (bucket, number, owed) in debts {
            let kept = self.kept.unit(number);
            let count = u64::from(!kept.is_some_and(Unit::is_of_stamps));
            let Some(unit) = self.unit(number) else {
                restored.lost += count;
                continue;
            };
            let Some(owed) = unit.left_of(owed, self.passed_ns) else {
                restored.full += count;
                continue;
            };
            restored.restored += count;
            owing.push(IndebtedBucket {
                bucket,
                number,
                unit,
                full_in_ns: unit.debt_ns(0, owed),
                owed,
            });
        }
        owing.sort_by_key(|owing| owing.full_in_ns);
        (owing, restored)
    }

    /// The unit with that number; `None`: the number stands for another unit now.
    fn unit(&self, number: u32) -> Option<&Unit> {
        let unit = self.units.unit(number)?;
        (self.kept.unit(number) == Some(unit)).then_some(unit)
    }
}
