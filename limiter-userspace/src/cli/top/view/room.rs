//! The room for what is above the offenders.

/// The height of all else on a screen that shows some offenders too.
const OTHERS: u16 = 16;

/// Returns how many limits may be shown there on a screen of that height.
pub(super) fn limits(height: u16) -> usize {
    usize::from(height.saturating_sub(OTHERS)) / 2
}
