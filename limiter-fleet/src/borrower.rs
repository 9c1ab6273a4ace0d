//! A borrower: the share that a node has of one bank.

use crate::{Ask, Boot, Bucket, Loan, NodeId, Share, Terms};

/// The share that a node has of one bank, and its questions to it.
#[derive(Clone, Debug)]
pub(crate) struct Borrower {
    bank: NodeId,
    /// The bank's start, as its last loan told it.
    bank_boot: Boot,
    /// The number of the last question, and when it was asked.
    number: u64,
    asked_at: u64,
    is_answered: bool,
    held: Share,
    until: u64,
    /// Tokens that went with a share, in thousandths, and are not given back yet.
    owed: u64,
}

impl Borrower {
    pub(crate) const fn new(bank: NodeId) -> Self {
        Self {
            bank,
            bank_boot: Boot(0),
            number: 0,
            asked_at: 0,
            is_answered: true,
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

    /// Asks for as much as the node `wants`, unless an answer is on its way. Gives back what it has
    /// beyond. `in_force` is what the node has of all shares.
    pub(crate) fn ask(
        &mut self,
        now: u64,
        me: (NodeId, Boot),
        wants: Share,
        in_force: Share,
        terms: &Terms,
        bucket: &mut impl Bucket,
    ) -> Option<Ask> {
        let is_waiting = !self.is_answered && now < self.asked_at.saturating_add(terms.patience_ns);
        let held = self.held(now);
        if is_waiting || (wants == Share::NONE && held == Share::NONE) {
            return None;
        }
        let keeps = held.min(wants);
        if keeps < held {
            // Before anybody can hear that it is free.
            self.owed += bucket.change(now, in_force.without(held.without(keeps)), 0);
        }
        self.held = keeps;
        self.number += 1;
        self.asked_at = now;
        self.is_answered = false;
        let (from, boot) = me;
        Some(Ask {
            from,
            to: self.bank,
            boot,
            bank_boot: self.bank_boot,
            number: self.number,
            keeps,
            returned_millitokens: std::mem::take(&mut self.owed),
            wants,
        })
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
        let rest = in_force.without(self.held(now));
        if self.bank_boot != loan.bank_boot {
            self.bank_boot = loan.bank_boot;
            // Another start's.
            self.owed = 0;
        }
        self.is_answered = true;
        self.held = loan.share;
        self.until = until;
        self.owed += bucket.change(now, rest + loan.share, loan.millitokens);
    }

    /// Returns when the loan is over, if there is one.
    pub(crate) fn ends(&self, now: u64) -> Option<u64> {
        (self.held(now) > Share::NONE).then_some(self.until)
    }
}
