//! What the kernel's buckets owe, to be kept elsewhere.

use limiter_common::{
    table::{self, LOCKED},
    unit::KnownUnits as _,
};

use super::{BucketMaps, DatapathError, bucket_of};
use crate::{
    config::Store,
    policy::Units,
    state::{Debts, HashDebt, StoredDebts, TableDebt, TableDebts},
};

impl BucketMaps {
    /// Every bucket that owes something at the time `now_ns`, one after the other and not at one
    /// moment. `units`: those that buckets count in.
    pub fn capture(&self, units: &Units, now_ns: u64) -> Result<Debts, DatapathError> {
        let owed = |unit: u32, state: u64| {
            let now = units.unit(unit)?.ticks(now_ns);
            state.checked_sub(now).filter(|ticks| *ticks > 0)
        };
        let stored = match self.settings.buckets.store {
            Store::Table => {
                let debts = self.in_lines().filter_map(|(line, name, state)| {
                    let ticks = owed(table::unit_of(name), state)?;
                    Some(TableDebt { line, name, ticks })
                });
                StoredDebts::Table(TableDebts {
                    hash_key: self.settings.hash_key,
                    lines: self.table.count(),
                    debts: debts.collect(),
                })
            }
            Store::Hash => {
                let buckets = self.elements()?.into_iter();
                let buckets = buckets.map(|(key, element)| (key, bucket_of(element)));
                let debts = buckets.filter_map(|(key, bucket)| {
                    let unit = bucket.unit;
                    let ticks = owed(unit, bucket.state)?;
                    // Just being exchanged: what it owes is not to be known, and not that.
                    (bucket.state != LOCKED).then_some(HashDebt { key, unit, ticks })
                });
                StoredDebts::Hash(debts.collect())
            }
        };
        Ok(Debts {
            units: units.clone(),
            stored,
        })
    }
}
