//! What buckets owe.

use std::{collections::HashMap, net::IpAddr};

use limiter_common::{
    bucket::{BucketKey, Owner},
    limit::LimitId,
    table::{self, HashKey},
    unit::{KnownUnits as _, Unit},
};
use serde::{Deserialize, Serialize};

use crate::policy::{Units, serial::HashKeyForm};

/// What every bucket owed at one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Debts {
    /// The units that they count in.
    pub units: Units,
    /// The buckets that owed something.
    pub stored: StoredDebts,
}

impl Debts {
    /// What was spent since: these less the `earlier` ones, of the same buckets, `passed_ns`
    /// before.
    #[must_use]
    pub fn since(&self, earlier: &Self, passed_ns: u64) -> Self {
        let spent = |unit: u32, ticks: u64, before: Option<u64>| {
            let passed = self.units.unit(unit)?.ticks(passed_ns);
            // Of a bucket that was full in between, all that it owes was spent since.
            let owed_still = before.unwrap_or(0).saturating_sub(passed);
            Some(ticks.saturating_sub(owed_still)).filter(|ticks| *ticks > 0)
        };
        let stored = match (&self.stored, &earlier.stored) {
            (StoredDebts::Table(table), StoredDebts::Table(earlier)) => {
                let before = earlier.debts.iter();
                let before: HashMap<_, _> = before
                    .map(|debt| ((debt.line, debt.name), debt.ticks))
                    .collect();
                let debts = table.debts.iter().filter_map(|debt| {
                    let owed = before.get(&(debt.line, debt.name)).copied();
                    let ticks = spent(table::unit_of(debt.name), debt.ticks, owed)?;
                    Some(TableDebt { ticks, ..*debt })
                });
                StoredDebts::Table(TableDebts {
                    debts: debts.collect(),
                    ..*table
                })
            }
            (StoredDebts::Hash(debts), StoredDebts::Hash(earlier)) => {
                let before = earlier.iter();
                let before: HashMap<_, _> = before
                    .map(|debt| ((debt.key, debt.unit), debt.ticks))
                    .collect();
                let debts = debts.iter().filter_map(|debt| {
                    let owed = before.get(&(debt.key, debt.unit)).copied();
                    let ticks = spent(debt.unit, debt.ticks, owed)?;
                    Some(HashDebt { ticks, ..*debt })
                });
                StoredDebts::Hash(debts.collect())
            }
            // Of another store: nothing is known of before.
            (stored, _) => stored.clone(),
        };
        Self {
            units: self.units.clone(),
            stored,
        }
    }
}

/// What the buckets of one set owed: that of all interfaces, or of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetDebts {
    /// The interface that has the buckets to itself, by name; `None`: all share them.
    pub interface: Option<String>,
    /// What they owed.
    pub debts: Debts,
}

/// Buckets that owed something, as their store knows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoredDebts {
    /// By hashes of their owners.
    Table(TableDebts),
    /// By their owners.
    Hash(Vec<HashDebt>),
}

/// Buckets of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableDebts {
    /// The secret of the table.
    #[serde(with = "HashKeyForm")]
    pub hash_key: HashKey,
    /// How many lines the table had, a power of two.
    pub lines: u32,
    /// The buckets.
    pub debts: Vec<TableDebt>,
}

/// A bucket of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableDebt {
    /// The index of its line.
    pub line: u32,
    /// Its name, which tells the limit and the unit.
    pub name: u64,
    /// What it owes, in ticks of its unit.
    pub ticks: u64,
}

/// A bucket of the hash map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "KeptHashDebt", into = "KeptHashDebt")]
pub struct HashDebt {
    /// The bucket.
    pub key: BucketKey,
    /// The number of its unit.
    pub unit: u32,
    /// What it owes, in ticks of its unit.
    pub ticks: u64,
}

#[derive(Serialize, Deserialize)]
struct KeptHashDebt {
    limit: u16,
    owner: KeptOwner,
    unit: u32,
    ticks: u64,
}

#[derive(Serialize, Deserialize)]
enum KeptOwner {
    Range(IpAddr, u8),
    Subscriber(u64),
    Interface(u32),
}

impl From<HashDebt> for KeptHashDebt {
    fn from(debt: HashDebt) -> Self {
        Self {
            limit: debt.key.limit,
            owner: match debt.key.owner() {
                Owner::Source {
                    address,
                    prefix_length,
                } => KeptOwner::Range(address.into(), prefix_length),
                Owner::Subscriber(number) => KeptOwner::Subscriber(number),
                Owner::Interface(number) => KeptOwner::Interface(number),
            },
            unit: debt.unit,
            ticks: debt.ticks,
        }
    }
}

impl From<KeptHashDebt> for HashDebt {
    fn from(kept: KeptHashDebt) -> Self {
        let limit = LimitId(kept.limit);
        Self {
            key: match kept.owner {
                KeptOwner::Range(address, prefix_length) => {
                    BucketKey::of_source(limit, address.into(), prefix_length)
                }
                KeptOwner::Subscriber(number) => BucketKey::of_subscriber(limit, number),
                KeptOwner::Interface(number) => BucketKey::of_interface(limit, number),
            },
            unit: kept.unit,
            ticks: kept.ticks,
        }
    }
}

impl StoredDebts {
    /// How many buckets owe something.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Table(table) => table.debts.len(),
            Self::Hash(debts) => debts.len(),
        }
    }

    /// Whether nobody owes anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What is left of a debt of `ticks` after `passed_ns`; `None`: nothing.
#[must_use]
pub(crate) fn left_of(unit: &Unit, ticks: u64, passed_ns: u64) -> Option<u64> {
    // In nanoseconds first: the ticks of a time that is longer may not fit.
    let is_owed = unit.debt_ns(0, ticks) > passed_ns;
    is_owed
        .then(|| ticks.saturating_sub(unit.ticks(passed_ns)))
        .filter(|ticks| *ticks > 0)
}

#[cfg(test)]
mod tests {
    use limiter_common::{address::Address, gcra::Gcra, limit::Cost};
    use proptest::prelude::*;

    use super::*;

    fn unit(count: u64, period_ns: u64) -> Unit {
        let gcra = Gcra::new(1, count, period_ns).unwrap();
        Unit::new(&gcra, Cost::Packets)
    }

    #[test]
    fn debts_grow_less_with_time() {
        let second = unit(1, 1_000_000_000);
        for (ticks, passed, expected) in [
            (10, 0, Some(10)),
            (10, 9, Some(1)),
            (10, 10, None),
            (10, u64::MAX, None),
            (0, 0, None),
            (u64::MAX, 5, Some(u64::MAX - 5)),
        ] {
            assert_eq!(
                left_of(&second, ticks, passed),
                expected,
                "{ticks} {passed}"
            );
        }
    }

    #[test]
    fn what_was_spent_since() {
        let second = unit(1, 1_000_000_000);
        let (units, numbers) = Units::default().intern(&[second]).unwrap();
        let debts = |owed: &[(u8, u64)]| {
            let limit = LimitId(1);
            let debts = owed.iter().map(|(last, ticks)| HashDebt {
                key: BucketKey::of_source(limit, Address::v4([192, 0, 2, *last]), 32),
                unit: numbers[0],
                ticks: *ticks,
            });
            Debts {
                units: units.clone(),
                stored: StoredDebts::Hash(debts.collect()),
            }
        };
        let earlier = debts(&[(1, 100), (2, 100), (3, 10), (5, 50)]);
        // After 20 ns: one has spent nothing, one 30, one was full in between, one is new.
        let later = debts(&[(1, 80), (2, 110), (3, 25), (4, 7), (5, 29)]);
        let expected = debts(&[(2, 30), (3, 25), (4, 7)]);
        assert_eq!(later.since(&earlier, 20), expected);
    }

    proptest! {
        /// Also in ticks that are no nanoseconds, and for times whose ticks do not fit 64 bits: what
        /// is left lasts as long as what was owed, less the time that has passed.
        #[test]
        fn time_is_taken_off_to_the_tick(ticks in 0u64..1 << 62, passed: u64) {
            for unit in [unit(3, 10), unit(64, 1), unit(7, 1_000_000_007)] {
                let left = left_of(&unit, ticks, passed).map_or(0, |left| unit.debt_ns(0, left));
                let expected = unit.debt_ns(0, ticks).saturating_sub(passed);
                prop_assert!(left.abs_diff(expected) <= 2, "{left} and not {expected}");
            }
        }
    }
}
