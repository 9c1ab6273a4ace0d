//! The sections `buckets`, `offenders` and `bans`: the room for each.

use std::{fmt, ops::RangeInclusive};

use limiter_common::table::WhenFull;
use serde::{Deserialize, Serialize};

use super::fields::{Field, Given};

/// The storage of limits' state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buckets {
    /// The kind of map.
    pub store: Store,
    /// The most buckets at once, over all limits.
    pub capacity: u32,
    /// The behaviour of a full [`Store::Table`].
    pub when_full: WhenFull,
    /// The interfaces that share buckets.
    pub scope: Scope,
}

/// The interfaces that share buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// All: a source has one budget on this host, across all interfaces.
    #[default]
    Host,
    /// None: a source has a separate budget on each interface.
    Interface,
}

impl Scope {
    /// Every scope, by its name in configuration files.
    const ALL: [(&'static str, Self); 2] = [("host", Self::Host), ("interface", Self::Interface)];

    /// Returns the scope's name in configuration files and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Interface => "interface",
        }
    }
}

/// The kind of map that holds the buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Store {
    /// A set-associative table of keyed hashes: fast, and a flood of forged sources cannot evict a
    /// source that is being limited.
    #[default]
    Table,
    /// The kernel's LRU hash map: exact keys, which `bpftool` can show.
    Hash,
}

impl Store {
    /// Every store, by its name in configuration files.
    const ALL: [(&'static str, Self); 2] = [("table", Self::Table), ("hash", Self::Hash)];

    /// Returns the store's name in configuration files and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Hash => "hash",
        }
    }
}

const WHEN_FULL: [(&str, WhenFull); 3] = [
    ("evict", WhenFull::Evict),
    ("deny-new", WhenFull::DenyNew),
    ("pass-new", WhenFull::PassNew),
];

impl Buckets {
    /// With fewer, a handful of clients would evict each other; with more, the kernel's hash map
    /// would take over 8 GB.
    const CAPACITIES: RangeInclusive<u64> = 1024..=64 * 1024 * 1024;
}

impl Default for Buckets {
    fn default() -> Self {
        Self {
            store: Store::default(),
            capacity: 1024 * 1024,
            when_full: WhenFull::default(),
            scope: Scope::default(),
        }
    }
}

/// Formats the section as in a configuration file.
impl fmt::Display for Buckets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (store, capacity) = (self.store.name(), self.capacity);
        write!(formatter, "{{store: {store}, capacity: {capacity}")?;
        let mut known = WHEN_FULL.iter();
        match known.find(|(_, when_full)| *when_full == self.when_full) {
            Some((name, _)) if self.store == Store::Table => {
                write!(formatter, ", when-full: {name}")?;
            }
            _ => {}
        }
        write!(formatter, ", scope: {}}}", self.scope.name())
    }
}

pub(super) const BUCKETS_FIELDS: &[Field<Buckets>] = &[
    Field::new("store", "`table` or `hash`", |buckets, given| {
        given.choice(&mut buckets.store, Store::ALL);
    }),
    Field::new(
        "capacity",
        "[buckets in debt](strategies.md#memory) of all limits together, 1024 to 67108864 (1048576), rounded up to \
         four times a power of two",
        |buckets, given| given.whole(&mut buckets.capacity, Buckets::CAPACITIES),
    ),
    Field::new(
        "when-full",
        "`evict`, `deny-new` or `pass-new`; for `store: table`",
        |buckets, given| {
            given.choice(&mut buckets.when_full, WHEN_FULL);
            if buckets.store == Store::Hash {
                given.error(
                    "'when-full' is only for 'store: table': the kernel's hash map always evicts the \
                     least recently used entry",
                );
            }
        },
    ),
    Field::new(
        "scope",
        "`host` (a source has one budget on all interfaces) or `interface` (one on each; `capacity`, `offenders` and \
         their memory, too)",
        |buckets, given| given.choice(&mut buckets.scope, Scope::ALL),
    ),
];

/// The capacity for offenders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offenders {
    /// The most offenders at once, all limits together; 0: none are recorded.
    pub capacity: u32,
}

impl Offenders {
    /// No offenders are recorded.
    pub const OFF: Self = Self { capacity: 0 };

    /// With fewer, the kernel's map would hold little more than the spare entries that it keeps for each CPU.
    const LEAST: u64 = 1024;

    /// About 150 bytes each: 150 MB.
    const MOST: u64 = 1024 * 1024;
}

impl Default for Offenders {
    fn default() -> Self {
        Self { capacity: 65_536 }
    }
}

/// Formats the section as in a configuration file.
impl fmt::Display for Offenders {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{{capacity: {}}}", self.capacity)
    }
}

pub(super) const OFFENDERS_FIELDS: &[Field<Offenders>] = &[Field::new(
    "capacity",
    "how many are remembered, 1024 to 1048576 (65536); or 0: none",
    read_offenders,
)];

fn read_offenders(offenders: &mut Offenders, given: &mut Given<'_, '_, '_>) {
    given.whole(&mut offenders.capacity, 0..=Offenders::MOST);
    let capacity = u64::from(offenders.capacity);
    if (1..Offenders::LEAST).contains(&capacity) {
        given.error(format!(
            "invalid capacity '{capacity}', must be 0 (none are recorded) or from {} to {}",
            Offenders::LEAST,
            Offenders::MOST
        ));
    }
}

/// The capacity for bans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bans {
    /// The most bans at once.
    pub capacity: u32,
}

impl Bans {
    const LEAST: u64 = 1024;

    /// About 200 bytes each, allocated when first used: 800 MB.
    const MOST: u64 = 4 * 1024 * 1024;
}

impl Default for Bans {
    fn default() -> Self {
        Self {
            capacity: 512 * 1024,
        }
    }
}

/// Formats the section as in a configuration file.
impl fmt::Display for Bans {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{{capacity: {}}}", self.capacity)
    }
}

pub(super) const BANS_FIELDS: &[Field<Bans>] = &[Field::new(
    "capacity",
    "how many addresses and prefixes may be [banned](operate.md#bans) at once, 1024 to 4194304 (524288)",
    |bans, given| given.whole(&mut bans.capacity, Bans::LEAST..=Bans::MOST),
)];
