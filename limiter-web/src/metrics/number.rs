//! Numbers as gauges.

/// Converts a number to a gauge's type, saturating.
pub(super) fn gauge_of(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
