//! Limits for what no other limit of their kind counts, as the `*` of Traffic Server's plugin.

/// How many kinds of limits may have such limits.
pub const MOST_OTHERWISE: usize = 8;

/// The limits of one kind for what no other counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Otherwise {
    /// These limits, as bits by limit index; 0: the kind has none, and so have those that follow.
    pub limits: u64,
    /// The others of the kind.
    pub others: u64,
}

impl Otherwise {
    /// A kind without such limits.
    pub const NONE: Self = Self {
        limits: 0,
        others: 0,
    };
}

/// Returns the limits that count a packet, of those in `matched`, which match it.
#[must_use]
#[inline(always)]
pub fn without_otherwise(kinds: &[Otherwise; MOST_OTHERWISE], matched: u64) -> u64 {
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
