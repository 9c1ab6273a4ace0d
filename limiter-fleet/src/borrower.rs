//! The borrower's side of a loan: the share that a node has from one bank.

use crate::{Ask, Bucket, Loan, Memory, NodeId, Share, Terms};

/// Loans taken at one moment are renewed at this many different times, to spread the load.
const PARTS: u64 = 64;

/// The share that a node has from one bank, and its questions to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Borrower {
    pub(crate) bank: NodeId,
    /// The number of the last question, when it was asked, and for how much.
    number: u64,
    asked_at: u64,
    asked_for: Share,
    is_answered: bool,
    /// Whether to ask once more: the bank would answer differently now, or it counts more as lent than the
    /// node has.
    asks_again: bool,
    /// The share that the bank last asked the node to shrink to.
    at_most: Share,
    held: Share,
    /// When the loan ends. Renewals lengthen it up to `last`.
    until: u64,
    last: u64,
    /// Thousandths of tokens that came with a returned share, and are not returned yet.
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
            asks_again: false,
            at_most: Share::WHOLE,
            held: Share::NONE,
            until: 0,
            last: 0,
            owed: 0,
        }
    }

    /// Returns the borrowed share that the node may use.
    pub(crate) fn held(&self, now: u64, memory: &Memory) -> Share {
        if self.held > Share::NONE && self.has(now, memory) {
            self.held
        } else {
            Share::NONE
        }
    }

    /// Returns whether the last answer still runs, even an answer of nothing.
    fn has(&self, now: u64, memory: &Memory) -> bool {
        now < self.until || now < self.end(memory)
    }

    fn end(&self, memory: &Memory) -> u64 {
        memory.borrowed_until(self.bank, self.until, self.last)
    }

    /// Asks for the share that the node `wants`, if the question would be new and no answer is on its way.
    /// Returns any surplus. `in_force` is the node's total share.
    pub(crate) fn ask(
        &mut self,
        now: u64,
        wants: Share,
        in_force: Share,
        memory: &mut Memory,
        bucket: &mut impl Bucket,
    ) -> Option<Ask> {
        let held = self.held(now, memory);
        if !self.would_ask(now, wants, memory) {
            return None;
        }
        let keeps = held.min(wants).min(self.at_most);
        if keeps < held {
            // The bucket shrinks before the bank can hear that the share is free.
            self.owed += bucket.change(now, in_force.without(held.without(keeps)), 0);
        }
        self.held = keeps;
        // No renewal until the answer comes: the bank counts the kept share and the answer separately.
        self.until = self.end(memory);
        self.last = self.until;
        self.number = memory.next_number();
        self.asked_at = now;
        self.asked_for = wants;
        self.is_answered = false;
        self.asks_again = false;
        self.at_most = Share::WHOLE;
        Some(Ask {
            number: self.number,
            keeps,
            returned_millitokens: std::mem::take(&mut self.owed),
            wants,
        })
    }

    /// Returns whether [`Self::ask`] would send a question.
    pub(crate) fn would_ask(&self, now: u64, wants: Share, memory: &Memory) -> bool {
        now.saturating_sub(self.asked_at) >= Terms::SHORTEST_PAUSE_NS
            && self.is_due(now, wants, memory)
            && !self.is_waiting(now, memory)
    }

    /// Returns whether an answer may be on its way. A bank that has restarted since sends none.
    fn is_waiting(&self, now: u64, memory: &Memory) -> bool {
        !self.is_answered
            && now < self.asked_at.saturating_add(memory.terms().patience_ns)
            && memory.known_since(self.bank) <= self.asked_at
    }

    /// Returns whether a question is due: the demand has changed much, or a loan that is not renewed ends
    /// soon.
    fn is_due(&self, now: u64, wants: Share, memory: &Memory) -> bool {
        let held = self.held(now, memory);
        if wants == Share::NONE && held == Share::NONE {
            let is_withdrawn = self.asked_for == Share::NONE || !self.has(now, memory);
            return self.may_owe(now, memory) || self.is_answered && !is_withdrawn;
        }
        let has_all = held >= self.asked_for;
        let soon = now.saturating_add(memory.terms().margin_ns());
        self.asks_again
            || !self.is_answered
            || wants < held.less_an_eighth()
            || has_all && held < wants.less_an_eighth()
            || !self.has(soon, memory)
    }

    /// Returns whether the bank may still count a share as lent that the node has returned, or never
    /// received. It does so while the node renews.
    pub(crate) fn may_owe(&self, now: u64, memory: &Memory) -> bool {
        !self.is_answered && memory.is_renewed(self.bank, now)
    }

    /// Returns until when no question is due and no loan ends, at unchanged demand.
    pub(crate) fn calm_until(&self, now: u64, memory: &Memory) -> u64 {
        let is_quiet = self.asked_for == Share::NONE && self.held(now, memory) == Share::NONE;
        if self.asks_again || !self.is_answered {
            now
        } else if is_quiet {
            u64::MAX
        } else {
            self.end(memory).saturating_sub(memory.terms().margin_ns())
        }
    }

    /// Takes a loan, if it answers the last question in time. `in_force` is the node's total share.
    pub(crate) fn take(
        &mut self,
        now: u64,
        loan: &Loan,
        in_force: Share,
        memory: &mut Memory,
        bucket: &mut impl Bucket,
    ) {
        let terms = *memory.terms();
        let until = self.asked_at.saturating_add(terms.loan_ns);
        if self.is_answered || loan.number != self.number || now >= until {
            return;
        }
        let held = self.held(now, memory);
        let rest = in_force.without(held);
        self.is_answered = true;
        // The bank still counts the kept share, until the next question tells it.
        self.asks_again = loan.share < held.less_an_eighth();
        self.held = loan.share;
        self.until = until;
        // Spread the final ends, or all loans given together would be asked for again at once.
        let half = Terms::RENEWABLE_NS / 2;
        let later = half / PARTS * (self.number % PARTS);
        self.last = self.asked_at.saturating_add(half + later);
        memory.uses(self.bank, now);
        self.owed += bucket.change(now, rest + loan.share, loan.millitokens);
    }

    /// Makes the node ask once more, and return everything above `at_most`.
    pub(crate) const fn ask_again(&mut self, at_most: Share) {
        self.asks_again = true;
        self.at_most = at_most;
    }

    /// Marks the loan for renewal, if it still runs.
    pub(crate) fn note_use(&mut self, now: u64, memory: &mut Memory) {
        if !self.has(now, memory) {
            return;
        }
        // Saves the look-up for a while.
        self.until = self.end(memory);
        if self.asked_for > Share::NONE || self.held > Share::NONE {
            memory.uses(self.bank, now);
        }
    }

    /// Returns when the loan ends, if one runs.
    pub(crate) fn ends(&self, now: u64, memory: &Memory) -> Option<u64> {
        (self.held(now, memory) > Share::NONE).then(|| self.end(memory))
    }
}
