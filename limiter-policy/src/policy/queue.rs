//! How clients wait for a limit on connections that has no room for them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text;

/// How clients wait for a limit on connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// How many may wait for one owner's room.
    pub size: u64,
    /// After what time a client that waits is turned away, in nanoseconds; 0: never.
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
