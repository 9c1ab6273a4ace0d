//! The result of a decision.

use crate::{
    answer::Answer,
    bucket::Updated,
    policy::{Shape, Tables},
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
    pub(crate) denied_by: u32,
    /// The indices of the limits that count the packet, as bits. If it passed, all of them were
    /// charged except those of `would_drop`, unless it was refused first; if it was dropped, none.
    pub matched: u64,
    /// The indices of the limits that would have dropped it, if they did more than observe.
    pub would_drop: u64,
    /// The standing of the source, or [`NO_STANDING`].
    pub(crate) standing: u32,
    /// The number of the [`Answer`] to the packet.
    pub(crate) answer: u32,
}

/// In place of a standing: nobody asked for it, because the decision did not depend on it. Not an
/// `Option`, as for [`NO_LIMIT`].
const NO_STANDING: u32 = Standing::Unknown as u32 + 1;

/// In place of a standing: the stage of standing did not ask for it, because the packet passes
/// whatever it is, as far as that stage knows.
const SKIPPED: u32 = NO_STANDING + 1;

/// In place of a limit index: none. Not an `Option`, because LLVM may move its undefined half.
pub(crate) const NO_LIMIT: u32 = u32::MAX;

impl Verdict {
    /// Returns the verdict on a packet that no limit counts.
    #[must_use]
    #[inline(always)]
    pub const fn without_limits(reason: Reason) -> Self {
        Self {
            reason,
            denied_by: NO_LIMIT,
            matched: 0,
            would_drop: 0,
            standing: NO_STANDING,
            answer: Answer::Drop as u32,
        }
    }

    /// Makes a verdict of its parts as numbers, in their order in memory; `None`: there is no such
    /// reason.
    #[must_use]
    pub const fn from_raw(
        reason: u32,
        denied_by: u32,
        matched: u64,
        would_drop: u64,
        standing: u32,
        answer: u32,
    ) -> Option<Self> {
        match Reason::of_number(reason) {
            Some(reason) => Some(Self {
                reason,
                denied_by,
                matched,
                would_drop,
                standing,
                answer,
            }),
            None => None,
        }
    }

    /// Returns the index of the limit that dropped the packet; if several denied it, the one with
    /// the longest wait.
    #[must_use]
    #[inline(always)]
    pub const fn denied_by(&self) -> Option<u32> {
        if self.denied_by == NO_LIMIT {
            None
        } else {
            Some(self.denied_by)
        }
    }

    /// Returns the standing of the source; `None`: nobody asked for it, because the policy uses
    /// none, something else decided first, or the packet passed whatever it was.
    #[must_use]
    #[inline(always)]
    pub const fn standing(&self) -> Option<Standing> {
        if self.standing < NO_STANDING {
            Some(Standing::of_number(self.standing))
        } else {
            None
        }
    }

    /// Returns the number of the source's standing; that of no standing if nobody asked for it.
    #[must_use]
    #[inline(always)]
    pub const fn standing_number(&self) -> u32 {
        self.standing
    }

    /// Returns what is sent back to the sender.
    #[must_use]
    #[inline(always)]
    pub const fn answer(&self) -> Answer {
        Answer::of_number(self.answer)
    }

    /// Notes what is sent back to the sender.
    #[inline(always)]
    pub const fn set_answer(&mut self, answer: Answer) {
        self.answer = answer as u32;
    }

    /// Makes the stage of standing decide again: other limits may count the packet now.
    #[inline(always)]
    pub(crate) const fn decide_again(&mut self, shape: &Shape) {
        self.would_drop &= shape.of_every_standing();
    }

    /// Takes back a refusal of which no trace is left, to decide again.
    #[inline(always)]
    pub(crate) const fn reopen(&mut self) {
        self.reason = Reason::WithinLimits;
        self.denied_by = NO_LIMIT;
    }

    /// Returns whether the packet has been in the stage of standing.
    #[inline(always)]
    pub(crate) const fn has_met_standing(&self) -> bool {
        self.standing != NO_STANDING
    }

    /// Notes that the stage of standing did not ask for the source's.
    #[inline(always)]
    pub(crate) const fn skip_standing(&mut self) {
        self.standing = SKIPPED;
    }

    /// Notes the standing of the source.
    #[inline(always)]
    pub(crate) const fn set_standing(&mut self, standing: Standing) {
        self.standing = standing as u32;
    }

    /// Returns the action on the packet under the policy that decided on it.
    #[inline(always)]
    pub fn action<T: Tables>(&self, tables: &T) -> Action {
        self.reason.action(if tables.shape().malformed_pass == 1 {
            Action::Pass
        } else {
            Action::Drop
        })
    }

    /// Notes which of `limits`, which count the packet, block its source, by the listing of its
    /// class; returns whether one of them enforces.
    #[inline(always)]
    pub(crate) fn block<T: Tables>(&mut self, tables: &T, listing: u32, limits: u64) -> bool {
        let Some(blocking) = tables.mask(listing) else {
            return false;
        };
        let blocked = limits & *blocking;
        self.would_drop |= blocked & tables.shape().observing;
        let enforced = blocked & !tables.shape().observing;
        if enforced != 0 {
            self.drop_by(Reason::BlockedList, enforced.trailing_zeros());
        }
        enforced != 0
    }

    /// Notes that the packet passes, although a limit refused it.
    #[inline(always)]
    pub(crate) const fn pass_by(&mut self, reason: Reason) {
        self.reason = reason;
        self.denied_by = NO_LIMIT;
    }

    /// Notes that the packet is dropped for the limit at an index.
    #[inline(always)]
    pub(crate) const fn drop_by(&mut self, reason: Reason, limit_index: u32) {
        self.reason = reason;
        self.denied_by = limit_index;
    }

    /// Notes how the update of a bucket ended; returns whether the packet may still pass.
    #[inline(always)]
    pub(crate) fn note(&mut self, limit_index: u32, updated: Updated) -> bool {
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
        self.denied_by = limit_index;
        false
    }
}
