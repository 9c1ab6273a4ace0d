//! Limits for the packets that no other limit of their kind counts, like `*` in Traffic Server's
//! plugin.

/// The most kinds of limits that may have such limits.
pub const MOST_OTHERWISE: usize = 8;

/// The limits of one kind that count the packets no other limit of the kind counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct FallbackLimits {
    /// These limits, as bits by limit index; 0: none in this kind and all following kinds.
    pub limits: u64,
    /// The other limits of the kind.
    pub others: u64,
}

impl FallbackLimits {
    /// A kind without such limits.
    pub const NONE: Self = Self {
        limits: 0,
        others: 0,
    };
}

/// Returns the limits of `matched` that count the packet: drops each `otherwise` limit if another
/// limit of its kind matches.
#[must_use]
#[inline(always)]
pub fn without_otherwise(kinds: &[FallbackLimits; MOST_OTHERWISE], matched: u64) -> u64 {
    let mut counting = matched;
    for kind in kinds {
        if kind.limits == 0 {
            break;
        }
        if matched & kind.others != 0 {
            counting &= !kind.limits;
        }
    }
    counting
}
