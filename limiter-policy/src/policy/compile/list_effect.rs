//! The effect of lists on an address.

use std::ops::BitOrAssign;

use super::limit_sets::set_of;
use crate::policy::Policy;

/// The effect of lists on an address. Effects of several lists add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ListEffect {
    /// Never limited.
    excluded: bool,
    /// Always dropped, unless excluded.
    blocked: bool,
    /// The limits that do not count its packets.
    excluding: u64,
    /// The limits that drop its packets, except limits in `excluding`.
    blocking: u64,
    /// Proven.
    proven: bool,
}

impl ListEffect {
    /// Returns the effect of the list with this name; `None`: the list is unused.
    pub(super) fn of(policy: &Policy, name: &str) -> Option<Self> {
        let named = |names: &[String]| names.iter().any(|one| one == name);
        let listed = Self {
            excluded: named(&policy.exclude),
            blocked: named(&policy.block),
            excluding: set_of(&policy.limits, |limit| named(&limit.exclude)),
            blocking: set_of(&policy.limits, |limit| named(&limit.block)),
            proven: policy.uses_standing()
                && (policy.standing.as_ref()).is_some_and(|standing| named(&standing.proven)),
        };
        (listed != Self::default()).then_some(listed)
    }

    /// Returns the effect that decides on all packets of the address; `None`: limits decide. Other settings
    /// then do not matter, so such addresses share a class.
    pub(super) fn settling(self) -> Option<Self> {
        (self.excluded || self.blocked).then(|| Self {
            excluded: self.excluded,
            blocked: !self.excluded,
            ..Self::default()
        })
    }

    pub(super) const fn is_excluded(self) -> bool {
        self.excluded
    }

    pub(super) const fn is_blocked(self) -> bool {
        self.blocked && !self.excluded
    }

    pub(super) const fn is_proven(self) -> bool {
        self.proven
    }

    pub(super) const fn excluding(self) -> u64 {
        self.excluding
    }

    pub(super) const fn blocking(self) -> u64 {
        self.blocking & !self.excluding
    }
}

impl BitOrAssign for ListEffect {
    fn bitor_assign(&mut self, other: Self) {
        self.excluded |= other.excluded;
        self.blocked |= other.blocked;
        self.excluding |= other.excluding;
        self.blocking |= other.blocking;
        self.proven |= other.proven;
    }
}
