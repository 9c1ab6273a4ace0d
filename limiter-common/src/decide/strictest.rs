//! Of several denials the one to wait for longest.

use super::verdict::NO_SLOT;
use crate::reason::Reason;

/// The strictest denial so far.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Strictest {
    /// 0: none. [`NEVER`]: the packet can never pass. Else 1 more than the nanoseconds to
    /// wait.
    pub(crate) strictness: u64,
    /// Of the limit that denied, if one did.
    pub(super) slot: u32,
}

/// The strictness of a denial that no waiting ends.
pub(super) const NEVER: u64 = u64::MAX;

impl Strictest {
    pub(crate) const NONE: Self = Self {
        strictness: 0,
        slot: NO_SLOT,
    };

    #[inline(always)]
    pub(super) const fn consider(&mut self, slot: u32, strictness: u64) {
        if strictness > self.strictness {
            self.strictness = strictness;
            self.slot = slot;
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
