//! What the versions before 3 have of buckets: all are of GCRA.

use serde::Deserialize;

use crate::{
    policy::{KeptUnit, NoSuchUnit, Units},
    state::{
        Debts, SetDebts, StoredDebts, TableDebts,
        debts::{KeptHashDebt, KeptOwner},
    },
};

/// The debts at the beginning of these bytes, and the bytes behind them.
pub(super) fn take_sets(bytes: &[u8]) -> Result<(Vec<SetDebts>, &[u8]), postcard::Error> {
    let (sets, rest) = postcard::take_from_bytes::<Vec<OldSet>>(bytes)?;
    Ok((sets.into_iter().map(SetDebts::from).collect(), rest))
}

/// [`SetDebts`].
#[derive(Deserialize)]
struct OldSet {
    interface: Option<String>,
    units: OldUnits,
    stored: OldStored,
}

impl From<OldSet> for SetDebts {
    fn from(old: OldSet) -> Self {
        let stored = match old.stored {
            OldStored::Table(table) => StoredDebts::Table(table),
            OldStored::Hash(debts) => {
                StoredDebts::Hash(debts.into_iter().map(|debt| debt.kept().into()).collect())
            }
        };
        Self {
            interface: old.interface,
            debts: Debts {
                units: old.units.0,
                stored,
            },
        }
    }
}

#[derive(Deserialize)]
#[serde(try_from = "Vec<OldUnit>")]
struct OldUnits(Units);

impl TryFrom<Vec<OldUnit>> for OldUnits {
    type Error = NoSuchUnit;

    fn try_from(units: Vec<OldUnit>) -> Result<Self, NoSuchUnit> {
        let units: Vec<_> = units.into_iter().map(OldUnit::kept).collect();
        units.try_into().map(Self)
    }
}

/// [`KeptUnit`].
#[derive(Deserialize)]
struct OldUnit {
    number: u32,
    interval: u64,
    ticks_per_ns: [u64; 2],
    ns_per_tick: [u64; 2],
    cost: u32,
    current: bool,
}

impl OldUnit {
    const fn kept(self) -> KeptUnit {
        KeptUnit {
            number: self.number,
            interval: self.interval,
            ticks_per_ns: self.ticks_per_ns,
            ns_per_tick: self.ns_per_tick,
            cost: self.cost,
            current: self.current,
            layout: [0; 4],
        }
    }
}

/// [`StoredDebts`].
#[derive(Deserialize)]
enum OldStored {
    Table(TableDebts),
    Hash(Vec<OldHashDebt>),
}

/// [`KeptHashDebt`].
#[derive(Deserialize)]
struct OldHashDebt {
    limit: u16,
    owner: KeptOwner,
    unit: u32,
    owed: u64,
}

impl OldHashDebt {
    fn kept(self) -> KeptHashDebt {
        KeptHashDebt {
            limit: self.limit,
            owner: self.owner,
            unit: self.unit,
            owed: self.owed,
            stamp: 0,
        }
    }
}
