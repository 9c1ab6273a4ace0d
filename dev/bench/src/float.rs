//! Counts as floating-point numbers.

/// Counts here are far below 2^53.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of some seconds' packets"
)]
pub(crate) const fn to_f64(count: u64) -> f64 {
    count as f64
}
