//! The table of known names, for limits on new names.

use std::fmt;

use limiter_common::known_names::WAYS;
use serde::{Deserialize, Serialize};

use crate::text;

/// The size and time of the table of known names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownNames {
    /// The most names at once. The table's size is the next power of two.
    pub capacity: u32,
    /// The time that a name stays known after a query, in nanoseconds.
    pub known_for_ns: u64,
}

impl Default for KnownNames {
    fn default() -> Self {
        const HOUR_NS: u64 = 3_600_000_000_000;
        Self {
            capacity: 1 << 20,
            known_for_ns: 24 * HOUR_NS,
        }
    }
}

impl KnownNames {
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
impl fmt::Display for KnownNames {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            capacity,
            known_for_ns,
        } = self;
        let known_for = text::period(*known_for_ns);
        write!(formatter, "{{capacity: {capacity}, for: {known_for}}}")
    }
}
