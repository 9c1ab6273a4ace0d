//! Putting what buckets owe into the kernel's buckets.
//!
//! What a bucket of the table is called does not tell where it is in a table of another size. In
//! a smaller one, its line has the same number but for the leading bits. In a larger one, these
//! bits are those of a hash that nobody has kept: the bucket is put into each line where it may
//! be. The copies that nobody asks for are full some time later, and gone.

use std::{collections::HashMap, iter, ops::AddAssign};

use limiter_common::{
    owner::BucketKey,
    table::{self, OrderKind},
    unit::{KnownUnits as _, Unit},
};
use limiter_policy::{config::Store, policy::Units};

use super::{At, BucketMaps, DatapathError, Spot};
use crate::state::{Debts, HashDebt, StoredDebts, TableDebts};

/// The most lines that a bucket is put into: the most times that a table may have grown.
const MOST_COPIES: u32 = 16;

/// What has become of the buckets that owed something. A moving window is one bucket; of those that
/// gave way to others, each part counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// How many owe what they owed, less the time that has passed.
    pub restored: u64,
    /// How many are full by now.
    pub full: u64,
    /// How many are forgotten, for want of room or because nobody knows whose they are.
    pub lost: u64,
}

impl AddAssign for Restored {
    fn add_assign(&mut self, other: Self) {
        self.restored += other.restored;
        self.full += other.full;
        self.lost += other.lost;
    }
}

/// A bucket that still owes something.
struct Owing<'a, T> {
    bucket: T,
    /// The number of its unit.
    number: u32,
    unit: &'a Unit,
    /// How much longer until it is full, in nanoseconds.
    full_in_ns: u64,
    /// As [`Unit::owed`] has it.
    owed: u64,
}

impl BucketMaps {
    /// Puts buckets back that owed something `passed_ns` before `now_ns`, on top of what those
    /// that are there owe now. `units`: those that buckets count in; their numbers are to be those
    /// of `debts` where they have any in common.
    ///
    /// Where there is not room for all, those that would be full first are forgotten.
    pub fn restore(
        &self,
        debts: &Debts,
        units: &Units,
        now_ns: u64,
        passed_ns: u64,
    ) -> Result<Restored, DatapathError> {
        let back = Back {
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
                    iter::once(self.spot(&key, unit))
                })
            }
            (Store::Hash, StoredDebts::Hash(debts)) => self.keys_to_keys(&back, debts),
            // Of a hash nobody knows whose it is.
            (Store::Hash, StoredDebts::Table(_)) => Ok(all_lost(debts)),
        }
    }

    /// In how many lines a bucket of these may be; `None`: nobody knows whose they are.
    fn copies_of(&self, table: &TableDebts) -> Option<u32> {
        let (old, new) = (table.lines, self.table.count());
        let copies = (new / old.max(1)).max(1);
        let is_known = table.hash_key == self.settings.hash_key && old.is_power_of_two();
        Some(copies).filter(|copies| is_known && *copies <= MOST_COPIES)
    }

    fn lines_to_lines(
        &self,
        back: &Back<'_>,
        table: &TableDebts,
        copies: u32,
    ) -> Result<Restored, DatapathError> {
        let (old, new) = (table.lines, self.table.count());
        // In a smaller table the copies of a bucket that were made when it became larger are one
        // again. The debt that lasts longer is the larger number, whatever the strategy.
        let mut owed = HashMap::with_capacity(table.debts.len());
        for debt in &table.debts {
            let place = (debt.line & (old.min(new) - 1), debt.name);
            let most = owed.entry(place).or_insert(debt.owed);
            *most = debt.owed.max(*most);
        }
        let debts = owed.into_iter();
        let debts = debts.map(|((line, name), owed)| ((line, name), table::unit_of(name), owed));
        let (owing, restored) = back.owing(debts);
        self.add(back, owing, restored, |(line, name), _| {
            (0..copies).map(move |copy| Spot::in_line(line + copy * old, name))
        })
    }

    fn keys_to_keys(&self, back: &Back<'_>, debts: &[HashDebt]) -> Result<Restored, DatapathError> {
        let (mut owing, mut restored) = back.owing(of_keys(debts));
        let room = self.settings.buckets.capacity as usize;
        let forgotten = owing.len().saturating_sub(room);
        owing.drain(..forgotten);
        let evicted = (forgotten as u64).min(restored.restored);
        restored.restored -= evicted;
        restored.lost += evicted;
        self.add(back, owing, restored, |key, unit| {
            iter::once(Spot::in_hash(key, unit))
        })
    }

    /// Adds what buckets owe to what is owed in the spots that `spots` tells of each.
    fn add<T, S: Iterator<Item = Spot>>(
        &self,
        back: &Back<'_>,
        owing: Vec<Owing<'_, T>>,
        mut restored: Restored,
        spots: impl Fn(T, u32) -> S,
    ) -> Result<Restored, DatapathError> {
        let at = At {
            units: back.units,
            now_ns: back.now_ns,
        };
        let mut evicted = 0;
        for one in owing {
            for spot in spots(one.bucket, one.number) {
                let added = match one.unit.adding(back.now_ns, one.owed) {
                    Some(spend) => self.repeat_order(OrderKind::Spend, &spot, &at, spend),
                    None => self.alter(&spot, &at, |state| {
                        one.unit.owing(back.now_ns, state, one.owed)
                    }),
                };
                match added {
                    Ok(ended) => evicted += u64::from(ended.evicted),
                    // One that packets keep changing all the while is in use, and not forgotten.
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

/// Debts by keys, as [`Back::owing`] takes them.
fn of_keys(debts: &[HashDebt]) -> impl Iterator<Item = (BucketKey, u32, u64)> {
    let debts = debts.iter();
    debts.map(|debt| (debt.key, debt.unit, debt.owed))
}

fn all_lost(debts: &Debts) -> Restored {
    Restored {
        restored: 0,
        full: 0,
        lost: debts.count(),
    }
}

/// What buckets are put back with.
struct Back<'a> {
    units: &'a Units,
    kept: &'a Units,
    now_ns: u64,
    passed_ns: u64,
}

impl Back<'_> {
    /// The buckets that still owe something, those that are full again last at the end: they are
    /// not to give way to others.
    fn owing<T>(
        &self,
        debts: impl Iterator<Item = (T, u32, u64)>,
    ) -> (Vec<Owing<'_, T>>, Restored) {
        let mut restored = Restored::default();
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
            owing.push(Owing {
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

    /// The unit of a number; `None`: it is another one by now.
    fn unit(&self, number: u32) -> Option<&Unit> {
        let unit = self.units.unit(number)?;
        (self.kept.unit(number) == Some(unit)).then_some(unit)
    }
}
