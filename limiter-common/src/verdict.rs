//! The result of a decision.

use crate::{
    answer::Answer,
    bucket::UpdateOutcome,
    policy::{Features, Tables},
    reason::{Action, Reason},
    standing::Standing,
};

/// The decision on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Verdict {
    /// The reason; there is exactly one.
    pub reason: Reason,
    /// The index of the limit that dropped the packet, or [`NO_LIMIT`].
    pub(crate) refused_by: u32,
    /// The indices of the limits that count the packet, as bits. If it passed, they were all
    /// charged except the limits in `would_drop`, unless it was refused first; if it was dropped,
    /// none was charged.
    pub matched: u64,
    /// The indices of the limits that would have dropped it, but only observe.
    pub would_drop: u64,
    /// The standing of the source, or [`NO_STANDING`].
    pub(crate) standing: u32,
    /// The number of the [`Answer`] to the packet.
    pub(crate) answer: u32,
}

/// In place of a standing: the decision did not depend on it. Not an `Option`, as for [`NO_LIMIT`].
const NO_STANDING: u32 = Standing::Unknown as u32 + 1;

/// In place of a standing: the stage of standing skipped the look-up, because the packet passes
/// with any standing, as far as that stage knows.
const SKIPPED: u32 = NO_STANDING + 1;

/// In place of a limit index: none. Not an `Option`, because LLVM may move its undefined half.
pub(crate) const NO_LIMIT: u32 = u32::MAX;

impl Verdict {
    /// The verdict on a packet that no limit counts.
    #[must_use]
    #[inline(always)]
    pub const fn without_limits(reason: Reason) -> Self {
        Self {
            reason,
            refused_by: NO_LIMIT,
            matched: 0,
            would_drop: 0,
            standing: NO_STANDING,
            answer: Answer::Drop as u32,
        }
    }

    /// Makes a verdict from its parts as numbers, in their order in memory; `None`: no such reason.
    #[must_use]
    pub const fn from_raw(
        reason: u32,
        refused_by: u32,
        matched: u64,
        would_drop: u64,
        standing: u32,
        answer: u32,
    ) -> Option<Self> {
        match Reason::of_number(reason) {
            Some(reason) => Some(Self {
                reason,
                refused_by,
                matched,
                would_drop,
                standing,
                answer,
            }),
            None => None,
        }
    }

    /// The index of the limit that dropped the packet; if several denied it, the limit with the
    /// longest wait.
    #[must_use]
    #[inline(always)]
    pub const fn refused_by(&self) -> Option<u32> {
        if self.refused_by == NO_LIMIT {
            None
        } else {
            Some(self.refused_by)
        }
    }

    /// The standing of the source; `None`: the decision did not need it, because the policy does
    /// not use standing, another stage decided first, or the packet passed with any standing.
    #[must_use]
    #[inline(always)]
    pub const fn standing(&self) -> Option<Standing> {
        if self.standing < NO_STANDING {
            Some(Standing::of_number(self.standing))
        } else {
            None
        }
    }

    /// The number of the source's standing; a number outside [`Standing`] if the decision did not
    /// need it.
    #[must_use]
    #[inline(always)]
    pub const fn standing_number(&self) -> u32 {
        self.standing
    }

    /// The answer to the sender.
    #[must_use]
    #[inline(always)]
    pub const fn answer(&self) -> Answer {
        Answer::of_number(self.answer)
    }

    /// Sets the answer to the sender.
    #[inline(always)]
    pub const fn set_answer(&mut self, answer: Answer) {
        self.answer = answer as u32;
    }

    /// Makes the stage of standing decide again: other limits may count the packet now.
    #[inline(always)]
    pub(crate) const fn decide_again(&mut self, features: &Features) {
        self.would_drop &= features.of_every_standing();
    }

    /// Takes back a refusal completely, to decide again.
    #[inline(always)]
    pub(crate) const fn reopen(&mut self) {
        self.reason = Reason::WithinLimits;
        self.refused_by = NO_LIMIT;
    }

    /// Whether the packet has passed the stage of standing.
    #[inline(always)]
    pub(crate) const fn has_met_standing(&self) -> bool {
        self.standing != NO_STANDING
    }

    /// Marks the look-up of the source's standing as skipped.
    #[inline(always)]
    pub(crate) const fn skip_standing(&mut self) {
        self.standing = SKIPPED;
    }

    #[inline(always)]
    pub(crate) const fn set_standing(&mut self, standing: Standing) {
        self.standing = standing as u32;
    }

    /// The action on the packet under the policy that decided on it.
    #[inline(always)]
    pub fn action<T: Tables>(&self, tables: &T) -> Action {
        self.reason
            .action(if tables.features().malformed_pass == 1 {
                Action::Pass
            } else {
                Action::Drop
            })
    }

    /// Applies the listing of the packet's class to `limits`, the limits that count the packet:
    /// drops it for the first enforcing limit that blocks its source, and adds observing ones to
    /// `would_drop`. Returns whether it is dropped.
    #[inline(always)]
    pub(crate) fn block<T: Tables>(&mut self, tables: &T, listing: u32, limits: u64) -> bool {
        let Some(blocking) = tables.mask(listing) else {
            return false;
        };
        let blocked = limits & *blocking;
        self.would_drop |= blocked & tables.features().observing;
        let enforced = blocked & !tables.features().observing;
        if enforced != 0 {
            self.drop_by(Reason::BlockedList, enforced.trailing_zeros());
        }
        enforced != 0
    }

    /// Passes the packet, although a limit refused it.
    #[inline(always)]
    pub(crate) const fn pass_by(&mut self, reason: Reason) {
        self.reason = reason;
        self.refused_by = NO_LIMIT;
    }

    #[inline(always)]
    pub(crate) const fn drop_by(&mut self, reason: Reason, limit_index: u32) {
        self.reason = reason;
        self.refused_by = limit_index;
    }

    /// Applies the outcome of a bucket's update; returns whether the packet may still pass.
    #[inline(always)]
    pub(crate) fn apply_update(&mut self, limit_index: u32, updated: UpdateOutcome) -> bool {
        self.reason = match updated {
            UpdateOutcome::Stored => return true,
            UpdateOutcome::Untracked => {
                self.reason = Reason::Untracked;
                return true;
            }
            UpdateOutcome::Declined => Reason::OverLimit,
            UpdateOutcome::Contended => Reason::Contended,
            UpdateOutcome::Unavailable => Reason::BucketUnavailable,
        };
        self.refused_by = limit_index;
        false
    }
}
