//! Classes: sources that the policy does not tell apart.

/// What the policy has for the source addresses of one class, all of one family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Class {
    /// The limits that apply here, as far as the source goes.
    pub applies: u64,
    /// Bit `slot` set: the limit in that slot has an override here.
    pub overridden: u64,
    /// The subscriber they belong to; 0: none.
    pub subscriber: u64,
    /// Where the class's overrides start, in the order of the slots.
    pub first_override: u32,
    /// What lists say of them before any limit is asked: nothing, [`Self::EXCLUDED`],
    /// [`Self::BLOCKED`], or else the index of the set of those limits that block them, from
    /// [`super::Masks::RANGES`] on.
    pub standing: u32,
}

impl Class {
    /// The standing of those who are never limited.
    pub const EXCLUDED: u32 = 1;

    /// The standing of those who are always dropped.
    pub const BLOCKED: u32 = 2;

    /// Where the parameters of the limit in `slot` stand: its default's by its slot, or those of
    /// the class's override.
    #[must_use]
    #[inline(always)]
    pub const fn rate_index(&self, slot: u32) -> u32 {
        let bit = 1u64 << (slot & 63);
        if self.overridden & bit == 0 {
            return slot;
        }
        let before = (self.overridden & (bit - 1)).count_ones();
        self.first_override.wrapping_add(before)
    }
}
