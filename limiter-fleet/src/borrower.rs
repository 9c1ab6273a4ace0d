//! A borrower: the share that a node has of one bank.

use crate::{Ask, Bucket, Loan, Memory, NodeId, Share, Terms};

/// The share that a node has of one bank, and its questions to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Borrower {
    pub(crate) bank: NodeId,
    /// The number of the last question, when it was asked, and for how much.
    number: u64,
    asked_at: u64,
    asked_for: Share,
    is_answered: bool,
    /// How long to wait before the next question, if nothing changes.
    pause_ns: u64,
    held: Share,
    until: u64,
    /// Tokens that went with a share, in thousandths, and are not given back yet.
    owed: u64,
}

impl Borrower {
    pub(crate) const fn new(bank: NodeId) -> Self {
        Self {
            bank,
            number: 0,
            asked_at: 0,
            asked_for: Share::NONE,
            is_answered: true,
            pause_ns: 0,
            held: Share::NONE,
            until: 0,
            owed: 0,
        }
    }

    /// Returns what the node may use.
    pub(crate) fn held(&self, now: u64) -> Share {
        if now < self.until {
            self.held
        } else {
            Share::NONE
        }
    }

    /// Asks for as much as the node `wants`, if there is anything new to say, and no answer on its way. Gives
    /// back what it has beyond. `in_force` is what the node has of all shares.
    pub(crate) fn ask(
        &mut self,
        now: u64,
        wants: Share,
        in_force: Share,
        memory: &mut Memory,
        bucket: &mut impl Bucket,
    ) -> Option<Ask> {
        let held = self.held(now);
        if !self.would_ask(now, wants, memory) {
            return None;
        }
        let keeps = held.min(wants);
        if keeps < held {
            // Before anybody can hear that it is free.
            self.owed += bucket.change(now, in_force.without(held.without(keeps)), 0);
        }
        self.held = keeps;
        self.number = memory.next_number();
        self.asked_at = now;
        self.asked_for = wants;
        self.is_answered = false;
        Some(Ask {
            number: self.number,
            keeps,
            returned_millitokens: std::mem::take(&mut self.owed),
            wants,
        })
    }

    /// Returns whether there is anything new to say, and no answer on its way.
    pub(crate) fn would_ask(&self, now: u64, wants: Share, memory: &Memory) -> bool {
        self.is_due(now, wants, memory.terms()) && !self.is_waiting(now, memory)
    }

    /// Returns whether an answer may be on its way. None is from a bank that has started anew since.
    fn is_waiting(&self, now: u64, memory: &Memory) -> bool {
        !self.is_answered
            && now < self.asked_at.saturating_add(memory.terms().patience_ns)
            && memory.known_since(self.bank) <= self.asked_at
    }

    /// Returns whether there is anything to say: to want much less or much more, or to want it still.
    fn is_due(&self, now: u64, wants: Share, terms: &Terms) -> bool {
        let held = self.held(now);
        if wants == Share::NONE && held == Share::NONE {
            return false;
        }
        let since = now.saturating_sub(self.asked_at);
        let has_all = held >= self.asked_for;
        let is_other = wants < held.less_an_eighth()
            || has_all && held < wants.less_an_eighth()
            || held == Share::NONE && self.asked_for == Share::NONE;
        since >= self.pause_ns.max(terms.shortest_pause_ns())
            || is_other && since >= terms.shortest_pause_ns()
    }

    /// Takes a loan, if it answers the last question in time. `in_force` is what the node has of all
    /// shares.
    pub(crate) fn take(
        &mut self,
        now: u64,
        loan: &Loan,
        in_force: Share,
        terms: &Terms,
        bucket: &mut impl Bucket,
    ) {
        let until = self.asked_at.saturating_add(terms.loan_ns);
        if self.is_answered || loan.number != self.number || now >= until {
            return;
        }
        let held = self.held(now);
        let rest = in_force.without(held);
        self.is_answered = true;
        let is_same = loan.share >= held.less_an_eighth() && held >= loan.share.less_an_eighth();
        self.pause_ns = if is_same {
            (2 * self.pause_ns).clamp(terms.shortest_pause_ns(), terms.longest_pause_ns())
        } else {
            0
        };
        self.held = loan.share;
        self.until = until;
        self.owed += bucket.change(now, rest + loan.share, loan.millitokens);
    }

    /// Returns when the loan is over, if there is one.
    pub(crate) fn ends(&self, now: u64) -> Option<u64> {
        (self.held(now) > Share::NONE).then_some(self.until)
    }
}
