//! The treatment of a connection's data until its server name is known, and the table of cached DNS names, for
//! limits on new names.

use std::fmt;

use limiter_common::cached_names::WAYS;
use serde::{Deserialize, Serialize};

use crate::text;

/// The treatment of a connection's data until its server name is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UntilKnown {
    /// It passes, and limits by name do not count it.
    #[default]
    Pass,
    /// It is dropped, and the client sends it again.
    Hold,
}

impl UntilKnown {
    /// Every value.
    pub const ALL: [Self; 2] = [Self::Pass, Self::Hold];

    /// Returns the name in configuration files and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Hold => "hold",
        }
    }

    /// Returns whether it is the default.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

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
