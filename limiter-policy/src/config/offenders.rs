//! The section `offenders`: the number of offenders that are recorded.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{node::Node, reader::Reader};

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

pub(super) fn read<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Offenders {
    let mut offenders = Offenders::default();
    let Some(fields) = reader.fields(node, "a map with 'capacity'", &["capacity"]) else {
        return offenders;
    };
    if let Some(node) = fields.get("capacity")
        && let Some(capacity) = reader.whole(node, "capacity", 0..=Offenders::MOST)
        && let Ok(given) = u32::try_from(capacity)
    {
        if (1..Offenders::LEAST).contains(&capacity) {
            reader.error(
                node.at,
                format!(
                    "invalid capacity '{capacity}', must be 0 (none are recorded) or from {} to {}",
                    Offenders::LEAST,
                    Offenders::MOST
                ),
            );
        }
        offenders.capacity = given;
    }
    offenders
}
