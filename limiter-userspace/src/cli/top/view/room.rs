//! Shares out the rows above the offenders.

/// The height of all else on a screen that shows some offenders.
const OTHERS: u16 = 16;

/// Returns how many limits fit above the offenders on a screen of this height.
pub(super) fn limits(height: u16) -> usize {
    usize::from(height.saturating_sub(OTHERS)) / 2
}
