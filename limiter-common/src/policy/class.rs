//! Classes: sources that the policy treats alike.

/// The policy's rules for the source addresses of one class, all of one family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Class {
    /// The limits that apply to these sources.
    pub applies: u64,
    /// Bit `limit_index` set: the limit with that index has an override for this class.
    pub overridden: u64,
    /// The subscriber that the sources belong to; 0: none.
    pub subscriber: u64,
    /// The index of the class's first override; the others follow in the order of the limits.
    pub first_override: u32,
    /// The lists' result for the sources, before any limit is asked: 0 for none,
    /// [`Self::EXCLUDED`], [`Self::BLOCKED`], or the index of the set of limits that block them,
    /// from [`super::Masks::RANGES`] on. [`Self::PROVEN`] may be added.
    pub listing: u32,
}

impl Class {
    /// The listing of sources that are never limited.
    pub const EXCLUDED: u32 = 1;

    /// The listing of sources that are always dropped.
    pub const BLOCKED: u32 = 2;

    /// The bit of sources proven by a list.
    pub const PROVEN: u32 = 1 << 31;

    /// The lists' result without [`Self::PROVEN`].
    #[must_use]
    #[inline(always)]
    pub const fn listed(&self) -> u32 {
        self.listing & !Self::PROVEN
    }

    /// Whether a list proves the sources.
    #[must_use]
    #[inline(always)]
    pub const fn is_proven(&self) -> bool {
        self.listing & Self::PROVEN != 0
    }

    /// Returns the index of a limit's parameters: `limit_index` itself for the default, else the
    /// index of the class's override.
    #[must_use]
    #[inline(always)]
    pub const fn rate_index(&self, limit_index: u32) -> u32 {
        let bit = 1u64 << (limit_index & 63);
        if self.overridden & bit == 0 {
            return limit_index;
        }
        let before = (self.overridden & (bit - 1)).count_ones();
        self.first_override.wrapping_add(before)
    }
}
