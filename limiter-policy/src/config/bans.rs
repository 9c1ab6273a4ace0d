//! The section `bans`: the number of addresses and ranges that may be banned.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{node::Node, reader::Reader};

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

pub(super) fn read<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Bans {
    let mut bans = Bans::default();
    let Some(fields) = reader.fields(node, "a map with 'capacity'", &["capacity"]) else {
        return bans;
    };
    if let Some(node) = fields.get("capacity")
        && let Some(capacity) = reader.whole(node, "capacity", Bans::LEAST..=Bans::MOST)
        && let Ok(capacity) = u32::try_from(capacity)
    {
        bans.capacity = capacity;
    }
    bans
}
