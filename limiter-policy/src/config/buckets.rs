//! The section `buckets`: the storage of limits' state.

use std::{fmt, ops::RangeInclusive};

use limiter_common::table::WhenFull;
use serde::{Deserialize, Serialize};

use super::{node::Node, reader::Reader};

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
                "'when-full' is only for 'store: table': the kernel's hash map always evicts the \
                 least recently used entry",
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
