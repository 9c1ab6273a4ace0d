//! The debts of buckets.

use std::{collections::HashMap, net::IpAddr};

use limiter_common::{
    key::{BucketKey, Key},
    limit::{KeyPart, LimitId, NameKind},
    table::{self, HashKey},
    unit::{Unit, UnitTable as _},
};
use limiter_policy::policy::Units;
use serde::{Deserialize, Serialize};

/// The debts of all buckets at one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Debts {
    /// The units that the debts count in.
    pub units: Units,
    /// The buckets in debt.
    pub stored: StoredDebts,
}

impl Debts {
    /// The number of buckets in debt. A moving window counts as one, with any number of packets in
    /// its log.
    #[must_use]
    pub fn count(&self) -> u64 {
        let is_bucket = |unit: u32| !self.is_of_stamps(unit);
        let count = match &self.stored {
            StoredDebts::Table(table) => {
                let units = table.debts.iter().map(|debt| table::unit_of(debt.name));
                units.filter(|unit| is_bucket(*unit)).count()
            }
            StoredDebts::Hash(debts) => debts.iter().filter(|debt| is_bucket(debt.unit)).count(),
        };
        count as u64
    }

    /// Whether a bucket will still be in debt after `ns` nanoseconds without spending.
    #[must_use]
    pub fn would_outlast(&self, ns: u64) -> bool {
        let is_left = |unit: u32, owed| {
            let unit = self.units.unit(unit);
            unit.is_some_and(|unit| unit.left_of(owed, ns).is_some())
        };
        match &self.stored {
            StoredDebts::Table(table) => {
                let mut debts = table.debts.iter();
                debts.any(|debt| is_left(table::unit_of(debt.name), debt.owed))
            }
            StoredDebts::Hash(debts) => debts.iter().any(|debt| is_left(debt.unit, debt.owed)),
        }
    }

    fn is_of_stamps(&self, unit: u32) -> bool {
        self.units.unit(unit).is_some_and(Unit::is_of_stamps)
    }

    /// The tokens spent since the `earlier` debts of the same buckets, `passed_ns` before.
    #[must_use]
    pub fn since(&self, earlier: &Self, passed_ns: u64) -> Self {
        let spent = |unit: u32, owed: u64, earlier: Option<&u64>| {
            let unit = self.units.unit(unit)?;
            unit.since(owed, earlier.copied().unwrap_or(0), passed_ns)
        };
        let stored = match (&self.stored, &earlier.stored) {
            (StoredDebts::Table(table), StoredDebts::Table(earlier)) => {
                let before = earlier.debts.iter();
                let before: HashMap<_, _> = before
                    .map(|debt| ((debt.line, debt.name), debt.owed))
                    .collect();
                let debts = table.debts.iter().filter_map(|debt| {
                    let earlier = before.get(&(debt.line, debt.name));
                    let owed = spent(table::unit_of(debt.name), debt.owed, earlier)?;
                    Some(TableDebt { owed, ..*debt })
                });
                StoredDebts::Table(TableDebts {
                    debts: debts.collect(),
                    ..*table
                })
            }
            (StoredDebts::Hash(debts), StoredDebts::Hash(earlier)) => {
                let before = earlier.iter();
                let before: HashMap<_, _> = before
                    .map(|debt| ((debt.key, debt.unit), debt.owed))
                    .collect();
                let debts = debts.iter().filter_map(|debt| {
                    let earlier = before.get(&(debt.key, debt.unit));
                    let owed = spent(debt.unit, debt.owed, earlier)?;
                    Some(HashDebt { owed, ..*debt })
                });
                StoredDebts::Hash(debts.collect())
            }
            // The stores differ, so the earlier debts are unknown.
            (stored, _) => stored.clone(),
        };
        Self {
            units: self.units.clone(),
            stored,
        }
    }
}

/// The debts of one set of buckets: the set of all interfaces, or of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetDebts {
    /// The name of the interface with its own buckets; `None`: all interfaces share them.
    pub interface: Option<String>,
    /// The debts.
    pub debts: Debts,
}

/// Buckets in debt, in the form of their store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoredDebts {
    /// By hashes of their keys.
    Table(TableDebts),
    /// By their keys.
    Hash(Vec<HashDebt>),
}

/// Buckets of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableDebts {
    /// The secret of the table.
    pub hash_key: HashKey,
    /// The number of lines of the table, a power of two.
    pub lines: u32,
    /// The buckets.
    pub debts: Vec<TableDebt>,
}

/// A bucket of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableDebt {
    /// The index of its line.
    pub line: u32,
    /// Its name, which contains the limit and the unit.
    pub name: u64,
    /// Its debt, as returned by [`Unit::owed`].
    pub owed: u64,
}

/// A bucket of the hash map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "KeptHashDebt", into = "KeptHashDebt")]
pub struct HashDebt {
    /// The bucket.
    pub key: BucketKey,
    /// The number of its unit.
    pub unit: u32,
    /// Its debt, as returned by [`Unit::owed`].
    pub owed: u64,
}

#[derive(Serialize, Deserialize)]
struct KeptHashDebt {
    limit: u16,
    #[serde(rename = "owner")]
    key: KeptKey,
    /// The name that the bucket is for beside the key, as returned by [`BucketKey::name`].
    name: Option<(NameKind, u64)>,
    unit: u32,
    owed: u64,
    /// As returned by [`BucketKey::part`].
    stamp: u16,
}

#[derive(Serialize, Deserialize)]
enum KeptKey {
    Range(IpAddr, u8),
    Subscriber(u64),
    Interface(u64),
    Host,
    Destination(IpAddr),
    Zone(u64),
    Question(u64),
    Domain(u64),
    ServerName(u64),
}

impl From<HashDebt> for KeptHashDebt {
    fn from(debt: HashDebt) -> Self {
        Self {
            limit: debt.key.limit,
            key: match debt.key.decode() {
                Key::Source {
                    address,
                    prefix_length,
                } => KeptKey::Range(address.into(), prefix_length),
                Key::Destination(address) => KeptKey::Destination(address.into()),
                Key::Number(KeyPart::Subscriber, number) => KeptKey::Subscriber(number),
                Key::Number(KeyPart::Interface, number) => KeptKey::Interface(number),
                Key::Number(KeyPart::Zone, number) => KeptKey::Zone(number),
                Key::Number(KeyPart::Question, number) => KeptKey::Question(number),
                Key::Number(KeyPart::Domain, number) => KeptKey::Domain(number),
                Key::Number(KeyPart::ServerName, number) => KeptKey::ServerName(number),
                Key::Number(KeyPart::Host | KeyPart::Destination, _) => KeptKey::Host,
            },
            name: debt.key.name(),
            unit: debt.unit,
            owed: debt.owed,
            stamp: debt.key.part(),
        }
    }
}

impl From<KeptHashDebt> for HashDebt {
    fn from(kept: KeptHashDebt) -> Self {
        let limit = LimitId(kept.limit);
        let bucket = match kept.key {
            KeptKey::Range(address, prefix_length) => {
                BucketKey::of_source(limit, address.into(), prefix_length)
            }
            KeptKey::Subscriber(number) => BucketKey::of_number(limit, KeyPart::Subscriber, number),
            KeptKey::Interface(number) => BucketKey::of_number(limit, KeyPart::Interface, number),
            KeptKey::Host => BucketKey::of_host(limit),
            KeptKey::Destination(address) => BucketKey::of_destination(limit, address.into()),
            KeptKey::Zone(number) => BucketKey::of_number(limit, KeyPart::Zone, number),
            KeptKey::Question(number) => BucketKey::of_number(limit, KeyPart::Question, number),
            KeptKey::ServerName(number) => BucketKey::of_number(limit, KeyPart::ServerName, number),
            KeptKey::Domain(number) => BucketKey::of_number(limit, KeyPart::Domain, number),
        };
        let bucket = match kept.name {
            Some((name_kind, number)) => bucket.with_name(name_kind, number),
            None => bucket,
        };
        Self {
            key: match kept.stamp.checked_sub(1) {
                Some(number) => bucket.of_part(number.into()),
                None => bucket,
            },
            unit: kept.unit,
            owed: kept.owed,
        }
    }
}

#[cfg(test)]
mod tests {
    use limiter_common::{
        address::Address,
        limit::Cost,
        strategy::{Parameters, Strategy},
    };

    use super::*;

    fn unit(strategy: Strategy) -> Unit {
        let parameters = Parameters::new(strategy, 1, 1, 1_000_000_000).unwrap();
        Unit::new(&parameters, Cost::Packets)
    }

    #[test]
    fn what_was_spent_since() {
        let second = unit(Strategy::Gcra);
        let (units, numbers) = Units::default().intern(&[second]).unwrap();
        let debts = |owed: &[(u8, u64)]| {
            let limit = LimitId(1);
            let debts = owed.iter().map(|(last, owed)| HashDebt {
                key: BucketKey::of_source(limit, Address::v4([192, 0, 2, *last]), 32),
                unit: numbers[0],
                owed: *owed,
            });
            Debts {
                units: units.clone(),
                stored: StoredDebts::Hash(debts.collect()),
            }
        };
        let earlier = debts(&[(1, 100), (2, 100), (3, 10), (5, 50)]);
        // After 20 ns: one has spent nothing, one has spent 30, one was full in between, one is
        // new.
        let later = debts(&[(1, 80), (2, 110), (3, 25), (4, 7), (5, 29)]);
        let expected = debts(&[(2, 30), (3, 25), (4, 7)]);
        assert_eq!(later.since(&earlier, 20), expected);
        assert!(later.would_outlast(109) && !later.would_outlast(110));
        assert!(!debts(&[]).would_outlast(0));
    }

    #[test]
    fn a_moving_window_is_one_bucket() {
        let known = [unit(Strategy::MovingWindow), Unit::of_stamps(Cost::Packets)];
        let (units, numbers) = Units::default().intern(&known).unwrap();
        let key = BucketKey::of_subscriber(LimitId(1), 7);
        let keys = [(key, 0), (key.of_part(0), 1), (key.of_part(127), 1)];
        let in_hash = keys.map(|(key, unit)| HashDebt {
            key,
            unit: numbers[unit],
            owed: 5,
        });
        let in_table = (0..).zip(keys).map(|(line, (_, unit))| TableDebt {
            line,
            name: u64::from(numbers[unit]),
            owed: 5,
        });
        let in_table = TableDebts {
            hash_key: HashKey::default(),
            lines: 4,
            debts: in_table.collect(),
        };
        for stored in [
            StoredDebts::Hash(in_hash.into()),
            StoredDebts::Table(in_table),
        ] {
            let units = units.clone();
            let debts = Debts { units, stored };
            assert_eq!(debts.count(), 1);
            assert!(debts.would_outlast(4) && !debts.would_outlast(1_000_000_000));
        }
    }
}
