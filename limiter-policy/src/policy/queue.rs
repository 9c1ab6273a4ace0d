//! Clients that wait for a limit on connections.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text;

/// The queue of clients that wait for a limit on connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// The most clients that may wait for one key's room.
    pub size: u64,
    /// The maximum waiting time, in nanoseconds; 0: none.
    pub max_age_ns: u64,
}

/// Formats the field as in a configuration file.
impl fmt::Display for Queue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{{size: {}", self.size)?;
        if self.max_age_ns != 0 {
            write!(formatter, ", max-age: {}", text::period(self.max_age_ns))?;
        }
        formatter.write_str("}")
    }
}
