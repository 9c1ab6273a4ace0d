//! The table of cached names, for limits on new names.

use std::fmt;

use limiter_common::cached_names::WAYS;
use serde::{Deserialize, Serialize};

use crate::text;

/// The size and time of the table of cached names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CachedNames {
    /// The most names at once. The table's size is the next power of two.
    pub capacity: u32,
    /// The time that a name stays cached after a query, in nanoseconds.
    #[serde(rename = "known_for_ns")]
    pub cached_for_ns: u64,
}

impl Default for CachedNames {
    fn default() -> Self {
        const HOUR_NS: u64 = 3_600_000_000_000;
        Self {
            capacity: 1 << 20,
            cached_for_ns: 24 * HOUR_NS,
        }
    }
}

impl CachedNames {
    /// Returns whether it is the default.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the number of lines of the table, a power of two.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "a line has eight names")]
    pub const fn lines(&self) -> u32 {
        self.capacity.div_ceil(WAYS as u32).next_power_of_two()
    }
}

/// Formats the settings as in a configuration file.
impl fmt::Display for CachedNames {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            capacity,
            cached_for_ns,
        } = self;
        let cached_for = text::period(*cached_for_ns);
        write!(formatter, "{{capacity: {capacity}, for: {cached_for}}}")
    }
}
