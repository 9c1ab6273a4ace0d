//! The section `buckets`: where the state of limits is kept.

use std::{fmt, ops::RangeInclusive};

use limiter_common::table::WhenFull;
use serde::{Deserialize, Serialize};

use super::{node::Node, reader::Reader};

/// Where the state of limits is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buckets {
    /// In which kind of map.
    pub store: Store,
    /// How many buckets there may be at once, of all limits together.
    pub capacity: u32,
    /// What happens when there is no room for another one in [`Store::Table`].
    pub when_full: WhenFull,
    /// Which interfaces share them.
    pub scope: Scope,
}

/// Which interfaces share buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// All of them: a source has one budget, wherever it comes in.
    #[default]
    Host,
    /// None: a source has a budget on each interface.
    Interface,
}

impl Scope {
    /// Every scope, by its name in configuration files.
    const ALL: [(&'static str, Self); 2] = [("host", Self::Host), ("interface", Self::Interface)];

    /// The scope's name in configuration files and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Interface => "interface",
        }
    }
}

/// The kinds of map that buckets are kept in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Store {
    /// A set-associative table of keyed hashes: fast, and a flood of forged sources pushes out
    /// nobody who is being limited.
    #[default]
    Table,
    /// The kernel's LRU hash map: exact keys, which `bpftool` can show.
    Hash,
}

impl Store {
    /// Every store, by its name in configuration files.
    const ALL: [(&'static str, Self); 2] = [("table", Self::Table), ("hash", Self::Hash)];

    /// The store's name in configuration files and output.
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
    /// Below the least, a handful of clients would push each other out; above the most, the
    /// kernel's hash map would take over 8 GB.
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

/// As it would be configured.
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

/// Reads `buckets`.
pub(super) fn read<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Buckets {
    const FIELDS: [&str; 4] = ["store", "capacity", "when-full", "scope"];
    const EXPECTED: &str = "a map with store, capacity, when-full, scope";
    let mut buckets = Buckets::default();
    let Some(fields) = reader.fields(node, EXPECTED, &FIELDS) else {
        return buckets;
    };
    if let Some(node) = fields.get("store")
        && let Some(store) = reader.choice(node, "store", Store::ALL)
    {
        buckets.store = store;
    }
    if let Some(node) = fields.get("capacity")
        && let Some(capacity) = reader.whole(node, "capacity", Buckets::CAPACITIES)
        && let Ok(capacity) = u32::try_from(capacity)
    {
        buckets.capacity = capacity;
    }
    if let Some(node) = fields.get("when-full")
        && let Some(when_full) = reader.choice(node, "when-full", WHEN_FULL)
    {
        if buckets.store == Store::Hash {
            reader.error(
                node.at,
                "when-full is for 'store: table': the kernel's hash map always forgets the \
                 least recently used",
            );
        }
        buckets.when_full = when_full;
    }
    if let Some(node) = fields.get("scope")
        && let Some(scope) = reader.choice(node, "scope", Scope::ALL)
    {
        buckets.scope = scope;
    }
    buckets
}
