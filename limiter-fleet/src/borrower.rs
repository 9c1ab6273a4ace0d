//! The borrower's side of a loan: the share that a node has from one bank.

use crate::{Bucket, Loan, Memory, NodeId, Request, Share, Terms};

/// Loans taken at one moment are renewed at this many different times, to spread the load.
const PARTS: u64 = 64;

/// The share that a node has from one bank, and its requests to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Borrower {
    pub(crate) bank: NodeId,
    /// The number of the last request, when it was sent, and for how much.
    number: u64,
    requested_at: u64,
    requested_share: Share,
    has_reply: bool,
    /// Whether to send a request once more: the bank would reply differently now, or it counts more as lent
    /// than the node has.
    requests_again: bool,
    /// The share of the bank's last hint.
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
            requested_at: 0,
            requested_share: Share::NONE,
            has_reply: true,
            requests_again: false,
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

    /// Returns whether the last reply still runs, even a reply of nothing.
    fn has(&self, now: u64, memory: &Memory) -> bool {
        now < self.until || now < self.end(memory)
    }

    fn end(&self, memory: &Memory) -> u64 {
        memory.borrowed_until(self.bank, self.until, self.last)
    }

    /// Requests the share that the node `wants`, if the request would be new and no reply is on its way.
    /// Returns any surplus. `in_force` is the node's total share.
    pub(crate) fn request(
        &mut self,
        now: u64,
        wants: Share,
        in_force: Share,
        memory: &mut Memory,
        bucket: &mut impl Bucket,
    ) -> Option<Request> {
        let held = self.held(now, memory);
        if !self.would_request(now, wants, memory) {
            return None;
        }
        let keeps = held.min(wants).min(self.at_most);
        if keeps < held {
            // The bucket shrinks before the bank can learn that the share is free.
            self.owed += bucket.change(now, in_force.without(held.without(keeps)), 0);
        }
        self.held = keeps;
        // No renewal until the reply comes: the bank counts the kept share and the reply separately.
        self.until = self.end(memory);
        self.last = self.until;
        self.number = memory.next_number();
        self.requested_at = now;
        self.requested_share = wants;
        self.has_reply = false;
        self.requests_again = false;
        self.at_most = Share::WHOLE;
        Some(Request {
            number: self.number,
            keeps,
            returned_millitokens: std::mem::take(&mut self.owed),
            wants,
        })
    }

    /// Returns whether [`Self::request`] would send a request.
    pub(crate) fn would_request(&self, now: u64, wants: Share, memory: &Memory) -> bool {
        now.saturating_sub(self.requested_at) >= Terms::SHORTEST_PAUSE_NS
            && self.is_due(now, wants, memory)
            && !self.is_waiting(now, memory)
    }

    /// Returns whether a reply may be on its way. A bank that has restarted since sends none.
    fn is_waiting(&self, now: u64, memory: &Memory) -> bool {
        !self.has_reply
            && now < self.requested_at.saturating_add(memory.terms().patience_ns)
            && memory.known_since(self.bank) <= self.requested_at
    }

    /// Returns whether a request is due: the demand has changed much, or a loan that is not renewed ends
    /// soon.
    fn is_due(&self, now: u64, wants: Share, memory: &Memory) -> bool {
        let held = self.held(now, memory);
        if wants == Share::NONE && held == Share::NONE {
            let is_withdrawn = self.requested_share == Share::NONE || !self.has(now, memory);
            return self.may_owe(now, memory) || self.has_reply && !is_withdrawn;
        }
        let has_all = held >= self.requested_share;
        let soon = now.saturating_add(memory.terms().margin_ns());
        self.requests_again
            || !self.has_reply
            || wants < held.less_an_eighth()
            || has_all && held < wants.less_an_eighth()
            || !self.has(soon, memory)
    }

    /// Returns whether the bank may still count a share as lent that the node has returned, or never
    /// received. It does so while the node renews.
    pub(crate) fn may_owe(&self, now: u64, memory: &Memory) -> bool {
        !self.has_reply && memory.is_renewed(self.bank, now)
    }

    /// Returns until when no request is due and no loan ends, at unchanged demand.
    pub(crate) fn calm_until(&self, now: u64, memory: &Memory) -> u64 {
        let is_quiet = self.requested_share == Share::NONE && self.held(now, memory) == Share::NONE;
        if self.requests_again || !self.has_reply {
            now
        } else if is_quiet {
            u64::MAX
        } else {
            self.end(memory).saturating_sub(memory.terms().margin_ns())
        }
    }

    /// Takes a loan, if it replies to the last request in time. `in_force` is the node's total share.
    pub(crate) fn take(
        &mut self,
        now: u64,
        loan: &Loan,
        in_force: Share,
        memory: &mut Memory,
        bucket: &mut impl Bucket,
    ) {
        let terms = *memory.terms();
        let until = self.requested_at.saturating_add(terms.loan_ns);
        if self.has_reply || loan.number != self.number || now >= until {
            return;
        }
        let held = self.held(now, memory);
        let rest = in_force.without(held);
        self.has_reply = true;
        // The bank still counts the kept share, until the next request reports it.
        self.requests_again = loan.share < held.less_an_eighth();
        self.held = loan.share;
        self.until = until;
        // Spread the final ends, or all loans given together would be requested again at once.
        let half = Terms::RENEWABLE_NS / 2;
        let later = half / PARTS * (self.number % PARTS);
        self.last = self.requested_at.saturating_add(half + later);
        memory.uses(self.bank, now);
        self.owed += bucket.change(now, rest + loan.share, loan.millitokens);
    }

    /// Makes the node send a request once more, and return everything above `at_most`.
    pub(crate) const fn request_again(&mut self, at_most: Share) {
        self.requests_again = true;
        self.at_most = at_most;
    }

    /// Marks the loan for renewal, if it still runs.
    pub(crate) fn record_use(&mut self, now: u64, memory: &mut Memory) {
        if !self.has(now, memory) {
            return;
        }
        // Saves the look-up for a while.
        self.until = self.end(memory);
        if self.requested_share > Share::NONE || self.held > Share::NONE {
            memory.uses(self.bank, now);
        }
    }

    /// Returns when the loan ends, if one runs.
    pub(crate) fn ends(&self, now: u64, memory: &Memory) -> Option<u64> {
        (self.held(now, memory) > Share::NONE).then(|| self.end(memory))
    }
}
