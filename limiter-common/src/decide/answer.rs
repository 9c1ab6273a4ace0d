//! The answer to a refused packet: which one, and whether the limits of answers let it be sent.

use super::{DecisionSteps, Pipeline, Progress, Scratch, Stage, charging::charge_answer};
use crate::{
    answer::{Answer, AnswerOutcome},
    clock::Clock,
    limit::MAX_LIMITS,
    offender::OffenderTable,
    policy::{LimitEntry, Tables},
    reason::Reason,
    source_tables::SourceTables,
};

impl<C, T, B, O, R> Pipeline<'_, C, T, B, O, R>
where
    C: Clock,
    T: Tables,
    B: DecisionSteps,
    O: OffenderTable,
    R: SourceTables,
{
    /// Records the answer of the limit at an index, if it refused the packet for lack of budget;
    /// returns the stage's result.
    #[inline(always)]
    pub(super) fn refuse(&self, scratch: &mut Scratch<B::Location>, limit_index: u32) -> Progress {
        if scratch.verdict.reason.is_of_budget() {
            self.turn_away(scratch, limit_index)
        } else {
            Progress::Decided
        }
    }

    /// Records the limit's answer to a packet refused for any reason.
    #[inline(always)]
    pub(super) fn turn_away(
        &self,
        scratch: &mut Scratch<B::Location>,
        limit_index: u32,
    ) -> Progress {
        if !self.tables.features().answers() {
            return Progress::Decided;
        }
        let Some(limit) = self.tables.limit(limit_index) else {
            return Progress::Decided;
        };
        let answer = limit.answer_to(scratch.verdict.standing_number());
        if answer == Answer::Drop
            || answer == Answer::Truncate && !scratch.is_answer_due(limit_index, limit)
        {
            return Progress::Decided;
        }
        scratch.verdict.set_answer(answer);
        Progress::Answer
    }

    /// Whether the sender waits for an answer. A packet with one of the host's own addresses as its
    /// source is forged, so no sender waits.
    #[inline(always)]
    pub fn is_awaited(&self, scratch: &Scratch<B::Location>) -> bool {
        !self.source_tables.may_be_own(&scratch.packet.facts.source)
    }

    /// Charges the written answer to the limits of answers: to all, or to none, and it is not sent.
    /// A SYN for which the listening socket has room is charged in place of its answer, and so is
    /// an ACK with a valid cookie: all ways together let no more connections through.
    #[inline(always)]
    pub(super) fn answer(&self, scratch: &mut Scratch<B::Location>) -> Progress {
        if !charge_answer(self.buckets, self.tables, scratch) {
            scratch.verdict.set_answer(Answer::Drop);
        } else if let Some(reason) = scratch.passes_by {
            scratch.verdict.set_answer(Answer::Drop);
            scratch.verdict.pass_by(reason);
        }
        Progress::Decided
    }

    /// Whether the answer to a packet refused by one of `limits` may depend on its source's
    /// standing.
    #[inline(always)]
    pub(super) fn answers_by_standing(&self, limits: u64) -> bool {
        self.tables.features().answering_by_standing & limits != 0
    }
}

impl<Location> Scratch<Location> {
    /// Records the outcome of answering a refused packet; returns the stage that charges the answer, if any.
    #[inline(always)]
    pub const fn set_answer_outcome(&mut self, outcome: AnswerOutcome) -> Option<Stage> {
        self.passes_by = match outcome {
            AnswerOutcome::Answer(_) => None,
            AnswerOutcome::ListenerHasRoom => Some(Reason::ListenerHasRoom),
            AnswerOutcome::ValidSynCookie => Some(Reason::ValidSynCookie),
            AnswerOutcome::Nothing => {
                self.verdict.set_answer(Answer::Drop);
                return None;
            }
        };
        Some(Stage::Answer)
    }

    /// Counts a refused packet; returns whether to send the answer to it.
    #[inline(always)]
    fn is_answer_due(&mut self, limit_index: u32, limit: &LimitEntry) -> bool {
        let refused = &mut self.slips[(limit_index % MAX_LIMITS) as usize];
        *refused += 1;
        let is_sent = *refused >= limit.slip();
        if is_sent {
            *refused = 0;
        }
        is_sent
    }
}
