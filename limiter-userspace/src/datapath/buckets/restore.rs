//! Putting what buckets owe into the kernel's buckets.
//!
//! What a bucket of the table is called does not tell where it is in a table of another size. In
//! a smaller one, its line has the same number but for the leading bits. In a larger one, these
//! bits are those of a hash that nobody has kept: the bucket is put into each line where it may
//! be. The copies that nobody asks for are full some time later, and gone.

use std::{collections::HashMap, iter, ops::AddAssign};

use limiter_common::{
    table,
    unit::{KnownUnits as _, Unit},
};

use super::{At, BucketMaps, DatapathError, InMap, bucket_of};
use crate::{
    config::Store,
    policy::Units,
    state::{Debts, HashDebt, StoredDebts, TableDebts},
};

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
            (Store::Table, StoredDebts::Table(table)) => Ok(self
                .lines_to_lines(&back, table)
                .unwrap_or_else(|| all_lost(debts))),
            (Store::Table, StoredDebts::Hash(debts)) => Ok(self.keys_to_lines(&back, debts)),
            (Store::Hash, StoredDebts::Hash(debts)) => self.keys_to_keys(&back, debts),
            // Of a hash nobody knows whose it is.
            (Store::Hash, StoredDebts::Table(_)) => Ok(all_lost(debts)),
        }
    }

    /// `None`: nobody knows whose they are.
    fn lines_to_lines(&self, back: &Back<'_>, table: &TableDebts) -> Option<Restored> {
        let (old, new) = (table.lines, self.table.count());
        let copies = (new / old.max(1)).max(1);
        if table.hash_key != self.settings.hash_key
            || !old.is_power_of_two()
            || copies > MOST_COPIES
        {
            return None;
        }
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
        Some(self.fill_lines(back, debts, |(line, name)| {
            ((0..copies).map(move |copy| line + copy * old), name)
        }))
    }

    fn keys_to_lines(&self, back: &Back<'_>, debts: &[HashDebt]) -> Restored {
        let debts = debts.iter();
        let debts = debts.map(|debt| ((debt.key, debt.unit), debt.unit, debt.owed));
        self.fill_lines(back, debts, |(key, unit)| {
            let (line, name) = self.place(&key, unit);
            (iter::once(line), name)
        })
    }

    /// Puts buckets into the lines that `place` tells, under the name that it tells.
    fn fill_lines<T, L: Iterator<Item = u32>>(
        &self,
        back: &Back<'_>,
        debts: impl Iterator<Item = (T, u32, u64)>,
        place: impl Fn(T) -> (L, u64),
    ) -> Restored {
        let (owing, mut restored) = back.owing(debts);
        let at = At::new(back.units, back.now_ns);
        for one in owing {
            let (lines, name) = place(one.bucket);
            for line in lines {
                // One that packets keep changing all the while is in use, and not forgotten.
                let owing = |state| one.unit.owing(back.now_ns, state, one.owed);
                let _ = self.alter(line, name, &at, owing);
            }
        }
        let evicted = at.evicted().min(restored.restored);
        restored.restored -= evicted;
        restored.lost += evicted;
        restored
    }

    fn keys_to_keys(&self, back: &Back<'_>, debts: &[HashDebt]) -> Result<Restored, DatapathError> {
        let debts = debts.iter();
        let debts = debts.map(|debt| (*debt, debt.unit, debt.owed));
        let (owing, mut restored) = back.owing(debts);
        let room = self.settings.buckets.capacity as usize;
        let (forgotten, owing) = owing.split_at(owing.len().saturating_sub(room));
        let evicted = (forgotten.len() as u64).min(restored.restored);
        restored.restored -= evicted;
        restored.lost += evicted;
        let there: HashMap<_, _> = self.elements()?.into_iter().collect();
        let mut keys = Vec::with_capacity(owing.len());
        let mut elements = Vec::with_capacity(owing.len());
        for one in owing {
            let HashDebt { key, unit, .. } = one.bucket;
            let state = there.get(&key).map_or(0, |element| {
                back.units.state(bucket_of(*element), unit, back.now_ns)
            });
            let state = one.unit.owing(back.now_ns, state, one.owed);
            keys.push(InMap(key));
            elements.push(InMap([unit.into(), state]));
        }
        self.put(&keys, &elements)?;
        Ok(restored)
    }
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
