//! Captures the debts in the kernel's buckets.

use limiter_common::{
    bucket::Bucket,
    table::{self, LOCKED},
    unit::UnitTable as _,
};
use limiter_policy::{config::Store, policy::Units};

use super::{BucketMaps, DatapathError, bucket_of};
use crate::state::{Debts, HashDebt, StoredDebts, TableDebt, TableDebts};

impl BucketMaps {
    /// Captures every bucket in debt at the time `now_ns`. Packets go on meanwhile, so the capture
    /// is not a snapshot of one moment. `units`: the units that buckets count in.
    pub fn capture(&self, units: &Units, now_ns: u64) -> Result<Debts, DatapathError> {
        let walks = Walk::all(units);
        let stored = match self.settings.buckets.store {
            Store::Table => {
                let mut debts = Vec::new();
                for walk in walks {
                    debts.extend(self.in_lines().filter_map(|(line, fingerprint, state)| {
                        let owed = walk.owed(units, table::unit_of(fingerprint), state, now_ns)?;
                        Some(TableDebt {
                            line,
                            name: fingerprint,
                            owed,
                        })
                    }));
                }
                StoredDebts::Table(TableDebts {
                    hash_key: self.settings.hash_key,
                    lines: self.table.count(),
                    debts,
                })
            }
            Store::Hash => {
                let mut debts = Vec::new();
                for walk in walks {
                    let buckets = self.elements()?.into_iter();
                    let buckets = buckets.map(|(key, element)| (key, bucket_of(element)));
                    // A program is exchanging a locked bucket, so its debt is unknown.
                    let buckets = buckets.filter(|(_, bucket)| bucket.state != LOCKED);
                    debts.extend(buckets.filter_map(|(key, bucket)| {
                        let unit = bucket.unit;
                        let owed = walk.owed(units, unit, bucket.state, now_ns)?;
                        Some(HashDebt { key, unit, owed })
                    }));
                }
                StoredDebts::Hash(debts)
            }
        };
        Ok(Debts {
            units: units.clone(),
            stored,
        })
    }

    /// Counts the buckets in debt at the time `now_ns`, not at one moment. Each stamp of a moving
    /// window counts as a bucket.
    pub fn in_debt(&self, units: &Units, now_ns: u64) -> Result<u64, DatapathError> {
        let owes = |bucket: Bucket| {
            let unit = units.unit(bucket.unit);
            bucket.state != LOCKED && unit.is_some_and(|unit| unit.owed(now_ns, bucket.state) > 0)
        };
        let in_debt = match self.settings.buckets.store {
            Store::Table => {
                let buckets = self
                    .in_lines()
                    .map(|(_, name, state)| bucket_of([name, state]));
                buckets.filter(|bucket| owes(*bucket)).count()
            }
            Store::Hash => {
                let elements = self.elements()?.into_iter();
                let buckets = elements.map(|(_, element)| bucket_of(element));
                buckets.filter(|bucket| owes(*bucket)).count()
            }
        };
        Ok(in_debt as u64)
    }
}

/// A walk through all buckets that captures some of them.
///
/// The cursors of moving windows are captured before their stamps. A log with stamps older than its
/// cursor would lack packets; stamps newer than the cursor are ignored.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Walk {
    All,
    Cursors,
    Others,
}

impl Walk {
    fn all(units: &Units) -> &'static [Self] {
        if units.iter().any(|(_, unit)| unit.is_of_stamps()) {
            &[Self::Cursors, Self::Others]
        } else {
            &[Self::All]
        }
    }

    /// The debt of a bucket, if this walk captures it.
    fn owed(self, units: &Units, unit: u32, state: u64, now_ns: u64) -> Option<u64> {
        let unit = units.unit(unit)?;
        let is_cursor = unit.layout.strategy().has_log();
        let is_captured = match self {
            Self::All => true,
            Self::Cursors => is_cursor,
            Self::Others => !is_cursor,
        };
        Some(unit.owed(now_ns, state)).filter(|owed| is_captured && *owed > 0)
    }
}
