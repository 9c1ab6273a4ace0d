//! The strictest of several denials: the one that takes the longest wait.

use crate::{reason::Reason, verdict::NO_LIMIT};

/// The strictest denial so far.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Strictest {
    /// 0: no denial. [`NEVER`]: the packet can never pass. Else the nanoseconds to wait, plus 1.
    pub(crate) strictness: u64,
    /// The index of the limit that denied, or [`NO_LIMIT`].
    pub(super) limit_index: u32,
}

/// The strictness of a denial for ever.
pub(super) const NEVER: u64 = u64::MAX;

impl Strictest {
    pub(crate) const NONE: Self = Self {
        strictness: 0,
        limit_index: NO_LIMIT,
    };

    #[inline(always)]
    pub(super) const fn consider(&mut self, limit_index: u32, strictness: u64) {
        if strictness > self.strictness {
            self.strictness = strictness;
            self.limit_index = limit_index;
        }
    }

    #[inline(always)]
    pub(super) const fn reason(&self) -> Option<Reason> {
        match self.strictness {
            0 => None,
            NEVER => Some(Reason::LargerThanBurst),
            _ => Some(Reason::OverLimit),
        }
    }
}
