//! What was decided.

use crate::{
    bucket::Updated,
    policy::Tables,
    reason::{Action, Reason},
};

/// What was decided on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Verdict {
    /// The one reason.
    pub reason: Reason,
    /// The slot of the limit that dropped the packet, or [`NO_SLOT`].
    pub(crate) denied_by: u32,
    /// The slots of the limits that count the packet, as bits. When it passed, all of them
    /// were charged but those of `would_drop`; when it was dropped, none.
    pub matched: u64,
    /// The slots of the limits that would have dropped it, if they did more than observe.
    pub would_drop: u64,
}

/// In place of a slot: none. Not an `Option`, whose undefined half LLVM may move about.
pub(super) const NO_SLOT: u32 = u32::MAX;

impl Verdict {
    /// On a packet that no limit counts.
    #[must_use]
    #[inline(always)]
    pub const fn without_limits(reason: Reason) -> Self {
        Self {
            reason,
            denied_by: NO_SLOT,
            matched: 0,
            would_drop: 0,
        }
    }

    /// A verdict from its parts as numbers, in the order in which they lie in memory; `None`
    /// when there is no such reason.
    #[must_use]
    pub const fn from_raw(
        reason: u32,
        denied_by: u32,
        matched: u64,
        would_drop: u64,
    ) -> Option<Self> {
        match Reason::of_number(reason) {
            Some(reason) => Some(Self {
                reason,
                denied_by,
                matched,
                would_drop,
            }),
            None => None,
        }
    }

    /// The slot of the limit that dropped the packet: of several that denied, the one to
    /// wait for longest.
    #[must_use]
    #[inline(always)]
    pub const fn denied_by(&self) -> Option<u32> {
        if self.denied_by == NO_SLOT {
            None
        } else {
            Some(self.denied_by)
        }
    }

    /// What is done to the packet, under the policy that decided on it.
    #[inline(always)]
    pub fn action<T: Tables>(&self, tables: &T) -> Action {
        self.reason.action(if tables.shape().malformed_pass == 1 {
            Action::Pass
        } else {
            Action::Drop
        })
    }

    /// Notes which of the limits that count the packet block its source, whose class has that
    /// standing; returns whether one does more than observe.
    #[inline(always)]
    pub(super) fn block<T: Tables>(&mut self, tables: &T, standing: u32) -> bool {
        let Some(blocking) = tables.mask(standing) else {
            return false;
        };
        let blocked = self.matched & *blocking;
        self.would_drop |= blocked & tables.shape().observing;
        let enforced = blocked & !tables.shape().observing;
        if enforced != 0 {
            self.drop_by(Reason::BlockedList, enforced.trailing_zeros());
        }
        enforced != 0
    }

    /// Notes that the packet is dropped, for the limit in a slot.
    #[inline(always)]
    pub(crate) const fn drop_by(&mut self, reason: Reason, slot: u32) {
        self.reason = reason;
        self.denied_by = slot;
    }

    /// Notes how the update of a bucket ended; returns whether the packet may still pass.
    #[inline(always)]
    pub(super) fn note(&mut self, slot: u32, updated: Updated) -> bool {
        self.reason = match updated {
            Updated::Stored => return true,
            Updated::Untracked => {
                self.reason = Reason::Untracked;
                return true;
            }
            Updated::Declined => Reason::OverLimit,
            Updated::Contended => Reason::Contended,
            Updated::Unavailable => Reason::BucketUnavailable,
        };
        self.denied_by = slot;
        false
    }
}
