//! Numbers as gauges.

/// Returns a number as a gauge holds it; the largest that it can, if it cannot hold the number.
pub(super) fn gauge_of(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
