//! Formats sieves as in configuration files.

use std::fmt;

use super::{PermaBlock, PressureOf, Sieve};
use crate::text;

/// Formats the sieve on one line, without defaults.
impl fmt::Display for Sieve {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (buckets, size, percentage) = (self.buckets, self.size, self.percentage);
        write!(
            formatter,
            "{{buckets: {buckets}, size: {size}, percentage: {percentage}"
        )?;
        if self.max_age_ns > 0 {
            write!(formatter, ", max-age: {}", text::period(self.max_age_ns))?;
        }
        if self.perma_block != PermaBlock::default() {
            write!(formatter, ", perma-block: {}", self.perma_block)?;
        }
        if self.ipv6_prefix < 128 {
            write!(formatter, ", ipv6-prefix: {}", self.ipv6_prefix)?;
        }
        if let Some(pressure) = &self.pressure {
            write!(formatter, ", pressure: {pressure}")?;
        }
        formatter.write_str("}")
    }
}

impl fmt::Display for PermaBlock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (limit, threshold) = (self.limit, self.threshold);
        write!(formatter, "{{limit: {limit}, threshold: {threshold}")?;
        if self.max_age_ns > 0 {
            write!(formatter, ", max-age: {}", text::period(self.max_age_ns))?;
        }
        formatter.write_str("}")
    }
}

impl fmt::Display for PressureOf {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit(name) => write!(formatter, "{{limit: {name}}}"),
            Self::PacketsPerSecond(number) => {
                write!(formatter, "{{packets-per-second: {number}}}")
            }
        }
    }
}
