//! What lists say about an address on them.

use std::ops::BitOrAssign;

use super::limit_sets::set_of;
use crate::policy::Policy;

/// What lists say about an address; if it is on two lists, both apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Listed {
    /// It is never limited.
    excluded: bool,
    /// It is always dropped, unless it is excluded.
    blocked: bool,
    /// The limits that do not count its packets.
    excluding: u64,
    /// The limits that drop its packets, unless they exclude it.
    blocking: u64,
    /// It is proven.
    proven: bool,
}

impl Listed {
    /// Returns what the list with this name says; `None`: nothing uses it.
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

    /// Returns what settles all packets of the address, if anything does; then nothing else
    /// matters.
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

    /// Returns the limits that do not count its packets.
    pub(super) const fn excluding(self) -> u64 {
        self.excluding
    }

    /// Returns the limits that drop its packets.
    pub(super) const fn blocking(self) -> u64 {
        self.blocking & !self.excluding
    }
}

impl BitOrAssign for Listed {
    fn bitor_assign(&mut self, other: Self) {
        self.excluded |= other.excluded;
        self.blocked |= other.blocked;
        self.excluding |= other.excluding;
        self.blocking |= other.blocking;
        self.proven |= other.proven;
    }
}
