//! A child of a look-up node: either the final value or the next node.

/// The result for some values: the policy's value for all of them, or the node that divides them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Child(pub(super) u32);

impl Child {
    /// The start of a dimension that no limit matches on.
    pub const UNUSED: Self = Self(u32::MAX);

    const NODE: u32 = 1 << 31;

    /// Makes a child with a final `value`: the index of a class or of a set of limits, below 2^31.
    #[must_use]
    pub const fn value(value: u32) -> Self {
        Self(value)
    }

    /// Makes a child with the node at `index`, below 2^31 - 1.
    #[must_use]
    pub const fn node(index: u32) -> Self {
        Self(Self::NODE | index)
    }

    /// Whether this is [`Self::UNUSED`].
    #[must_use]
    #[inline(always)]
    pub const fn is_unused(self) -> bool {
        self.0 == Self::UNUSED.0
    }

    /// Returns the index of the node, if this is a node.
    #[must_use]
    #[inline(always)]
    pub const fn as_node(self) -> Option<u32> {
        if self.0 & Self::NODE == 0 {
            None
        } else {
            Some(self.0 & !Self::NODE)
        }
    }
}
