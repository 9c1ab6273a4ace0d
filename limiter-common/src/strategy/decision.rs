//! A decision on a bucket: its next state, and whether the packet passes.

/// The wait of a packet that never passes.
pub const NEVER: u64 = u64::MAX;

/// A decision on a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The bucket's new state. Some strategies change it after a refusal too.
    pub state: u64,
    /// The wait until the packet would pass, in ticks; 0: it passes. [`NEVER`]: it never does.
    pub wait: u64,
}

impl Decision {
    /// A decision that lets the packet pass.
    #[must_use]
    #[inline(always)]
    pub const fn pass(state: u64) -> Self {
        Self { state, wait: 0 }
    }

    #[inline(always)]
    pub(crate) const fn refuse(state: u64, wait: u64) -> Self {
        Self { state, wait }
    }

    /// Whether the packet passes.
    #[must_use]
    #[inline(always)]
    pub const fn passes(&self) -> bool {
        self.wait == 0
    }
}
