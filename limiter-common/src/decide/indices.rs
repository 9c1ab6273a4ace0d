//! The indices of limits, and sets of them.

use crate::{limit::MAX_LIMITS, policy::Tables};

#[inline(always)]
pub(super) const fn bit(limit_index: u32) -> u64 {
    1 << (limit_index & 63)
}

#[inline(always)]
pub(super) fn limit_indices<T: Tables>(tables: &T) -> impl Iterator<Item = u32> {
    let count = tables.features().limit_count;
    // The verifier needs a constant bound.
    (0..MAX_LIMITS).take_while(move |limit_index| *limit_index < count)
}

#[inline(always)]
pub(super) const fn contains(limits: u64, limit_index: u32) -> bool {
    limits & bit(limit_index) != 0
}
