//! The strictest of several denials: the one with the longest wait.

use crate::{reason::Reason, verdict::NO_LIMIT};

/// The strictest denial so far.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct StrictestRefusal {
    /// 0: no denial. [`RESERVED`]: denied only for a reserve. [`NEVER`]: the packet can never pass.
    /// Otherwise a result of [`over`].
    pub(crate) strictness: u64,
    /// The index of the limit that denied, or [`NO_LIMIT`].
    pub(super) limit_index: u32,
}

/// The strictness of a permanent denial.
pub(super) const NEVER: u64 = u64::MAX;

/// The strictness of a denial for a reserve: the packet would pass without it. Any other denial is
/// stricter, because it says more.
pub(super) const RESERVED: u64 = 1;

/// The strictness of a denial for that many nanoseconds.
#[inline(always)]
pub(super) const fn over(wait_ns: u64) -> u64 {
    wait_ns.saturating_add(RESERVED + 1)
}

impl StrictestRefusal {
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
            RESERVED => Some(Reason::Reserved),
            NEVER => Some(Reason::LargerThanBurst),
            _ => Some(Reason::OverLimit),
        }
    }
}
