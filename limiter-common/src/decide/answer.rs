//! The answer to a refused packet: which one, and whether the limits of answers let it be sent.

use super::{Outline, Pipeline, Progress, Stage, Workspace, charging::charge_answer};
use crate::{
    answer::{Answer, Response},
    clock::Clock,
    limit::MAX_LIMITS,
    offender::OffenderStore,
    policy::{LimitEntry, Tables},
    reason::Reason,
    reputation::Reputation,
};

impl<C, T, B, O, R> Pipeline<'_, C, T, B, O, R>
where
    C: Clock,
    T: Tables,
    B: Outline,
    O: OffenderStore,
    R: Reputation,
{
    /// Notes what the limit with that index, which refused the workspace's packet, answers; returns
    /// how the stage ends.
    #[inline(always)]
    pub(super) fn refuse(
        &self,
        workspace: &mut Workspace<B::Location>,
        limit_index: u32,
    ) -> Progress {
        if workspace.verdict.reason.is_of_budget() {
            self.turn_away(workspace, limit_index)
        } else {
            Progress::Decided
        }
    }

    /// Does the same whatever the limit refuses the packet for.
    #[inline(always)]
    pub(super) fn turn_away(
        &self,
        workspace: &mut Workspace<B::Location>,
        limit_index: u32,
    ) -> Progress {
        if !self.tables.shape().answers() {
            return Progress::Decided;
        }
        let Some(limit) = self.tables.limit(limit_index) else {
            return Progress::Decided;
        };
        let answer = limit.answer_to(workspace.verdict.standing_number());
        if answer == Answer::Drop
            || answer == Answer::Truncate && !workspace.slips(limit_index, limit)
        {
            return Progress::Decided;
        }
        workspace.verdict.set_answer(answer);
        Progress::Answer
    }

    /// Returns whether somebody waits for the answer to the workspace's packet: whoever names one
    /// of the host's own addresses as the source does not.
    #[inline(always)]
    pub fn is_awaited(&self, workspace: &Workspace<B::Location>) -> bool {
        !self.reputation.may_be_own(&workspace.packet.facts.source)
    }

    /// Charges the answer, which is written, to the limits of answers: to all of them; or to none,
    /// and it is not sent. A SYN for which the listening socket has room is charged in its place, and so is an
    /// ACK that brings a cookie: so all ways together let no more connections through.
    #[inline(always)]
    pub(super) fn answer(&self, workspace: &mut Workspace<B::Location>) -> Progress {
        if !charge_answer(self.buckets, self.tables, workspace) {
            workspace.verdict.set_answer(Answer::Drop);
        } else if let Some(reason) = workspace.passes_by {
            workspace.verdict.set_answer(Answer::Drop);
            workspace.verdict.pass_by(reason);
        }
        Progress::Decided
    }

    /// Returns whether the answer to a packet that one of `limits` refuses may depend on the
    /// standing of its source.
    #[inline(always)]
    pub(super) fn answers_by_standing(&self, limits: u64) -> bool {
        self.tables.shape().answering_by_standing & limits != 0
    }
}

impl<Location> Workspace<Location> {
    /// Notes what becomes of a refused packet; returns the stage that charges it, if one does.
    #[inline(always)]
    pub const fn note(&mut self, response: Response) -> Option<Stage> {
        self.passes_by = match response {
            Response::Answer(_) => None,
            Response::ListenerHasRoom => Some(Reason::ListenerHasRoom),
            Response::ValidSynCookie => Some(Reason::ValidSynCookie),
            Response::Nothing => {
                self.verdict.set_answer(Answer::Drop);
                return None;
            }
        };
        Some(Stage::Answer)
    }

    /// Counts a packet that a limit refused; returns whether the answer to it is to be sent.
    #[inline(always)]
    fn slips(&mut self, limit_index: u32, limit: &LimitEntry) -> bool {
        let refused = &mut self.slips[(limit_index % MAX_LIMITS) as usize];
        *refused += 1;
        let is_sent = *refused >= limit.slip();
        if is_sent {
            *refused = 0;
        }
        is_sent
    }
}
