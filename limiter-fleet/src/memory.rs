//! The part of a node's knowledge about other nodes that outlives budgets, so that it may forget budgets.
//!
//! A request must count once. A bank remembers each borrower's last request about each budget. Requests
//! are numbered over all budgets, so one number per borrower covers all forgotten ones. An earlier start's
//! requests are lost; so a request names the bank's start.
//!
//! Loans between two nodes are renewed together: a bank lengthens all that it counts as lent to the
//! borrower, and then confirms it. It cannot lengthen a loan that it has lost count of: so it renews
//! nothing until such loans are over.

use std::collections::BTreeMap;

use crate::{Boot, NodeId, Renewal, Terms, renewals::Renewals};

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// The sender's start.
    pub boot: Boot,
    /// The receiver's start as the sender last received it; 0: unknown.
    pub to_boot: Boot,
}

/// How much of a message counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relevance {
    /// Nothing: it is for another node, or from no member.
    None,
    /// It is for another start of this node: ignore the entries. An empty message may tell the sender the
    /// current start.
    OtherStart,
    /// Its entries count.
    Entries,
}

/// A node's lasting knowledge of the other nodes.
#[derive(Clone, Debug)]
pub struct Memory {
    id: NodeId,
    boot: Boot,
    terms: Terms,
    /// The number of nodes.
    nodes: u32,
    /// The number of the last request, over all banks and budgets.
    requested: u64,
    /// From when on this node renews its loans: by then, the loans that it has lost count of are over.
    renews_from: u64,
    /// How many runs of renewals of this node's loans have lapsed.
    lapses: u64,
    others: BTreeMap<NodeId, Other>,
}

/// Another node.
#[derive(Clone, Copy, Debug, Default)]
struct Other {
    /// Its start, and when this node first received it.
    boot: Boot,
    since: u64,
    /// The highest number among its forgotten requests.
    forgotten: (Boot, u64),
    /// Its last request for a renewal, and the renewals of this node's loans to that start.
    renewed: (Boot, u64),
    lent: Renewals,
    has_lapsed: bool,
    /// This node's last request for a renewal, when it was sent, and the renewals of loans from that
    /// node.
    number: u64,
    requested_at: u64,
    has_reply: bool,
    borrowed: Renewals,
    /// Until when this node has loans there to renew, as far as it knows.
    used_until: u64,
}

impl Memory {
    /// Returns the memory of a node that has just started, among `nodes` nodes. Loans of its earlier starts
    /// are unknown. `boot` is higher than in all its earlier starts.
    #[must_use]
    pub const fn new(now: u64, id: NodeId, boot: Boot, terms: Terms, nodes: u32) -> Self {
        Self {
            id,
            boot,
            terms,
            nodes,
            requested: 0,
            renews_from: now.saturating_add(terms.silent_ns()),
            lapses: 0,
            others: BTreeMap::new(),
        }
    }

    /// Returns this node.
    #[must_use]
    pub const fn id(&self) -> NodeId {
        self.id
    }

    /// Returns the terms of loans.
    #[must_use]
    pub const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Returns the header of a message to a node.
    #[must_use]
    pub fn header(&self, to: NodeId) -> Header {
        Header {
            from: self.id,
            to,
            boot: self.boot,
            to_boot: self.others.get(&to).map_or(Boot(0), |other| other.boot),
        }
    }

    /// Records the header of a message. Heed the entries only on [`Relevance::Entries`].
    pub fn receive(&mut self, now: u64, header: &Header) -> Relevance {
        if header.to != self.id || header.from == self.id || header.from.0 >= self.nodes {
            return Relevance::None;
        }
        let other = self.others.entry(header.from).or_default();
        if other.boot != header.boot {
            other.boot = header.boot;
            other.since = now;
        }
        if header.to_boot == self.boot {
            Relevance::Entries
        } else {
            Relevance::OtherStart
        }
    }

    /// Returns whether a request may be new although its budget is unknown: its number is higher than all
    /// forgotten ones.
    #[must_use]
    pub fn may_be_new(&self, header: &Header, number: u64) -> bool {
        let forgotten = self.others.get(&header.from).map(|other| other.forgotten);
        forgotten.is_none_or(|forgotten| (header.boot, number) > forgotten)
    }

    pub(crate) fn next_number(&mut self) -> u64 {
        self.requested += 1;
        self.requested
    }

    /// Returns since when the node's current start is known.
    pub(crate) fn known_since(&self, node: NodeId) -> u64 {
        self.others.get(&node).map_or(0, |other| other.since)
    }

    pub(crate) fn forget(&mut self, from: NodeId, request: (Boot, u64)) {
        let other = self.others.entry(from).or_default();
        other.forgotten = other.forgotten.max(request);
    }

    /// Returns the banks with a due renewal, each with the request to send.
    pub fn request_renewals(&mut self, now: u64) -> Vec<(NodeId, Renewal)> {
        let mut requests = Vec::new();
        for (node, other) in &mut self.others {
            if now >= other.used_until || !other.is_renewal_due(now, &self.terms) {
                continue;
            }
            self.requested += 1;
            (other.number, other.requested_at, other.has_reply) = (self.requested, now, false);
            let renewal = Renewal {
                requested: Some(self.requested),
                replied: None,
            };
            requests.push((*node, renewal));
        }
        requests
    }

    /// Returns how many runs of renewals of this node's loans have lapsed. While the number stays the same,
    /// renewed loans last.
    pub fn lapses(&mut self, now: u64) -> u64 {
        for other in self.others.values_mut() {
            if !other.has_lapsed && !other.lent.hold(now) {
                other.has_lapsed = true;
                self.lapses += 1;
            }
        }
        self.lapses
    }

    /// Handles the renewal in a message that [counts](Relevance::Entries); returns the reply.
    pub fn receive_renewal(&mut self, now: u64, header: &Header, renewal: &Renewal) -> Renewal {
        let other = self.others.entry(header.from).or_default();
        if let Some(number) = renewal.replied {
            other.take_renewal(now, number, &self.terms);
        }
        let request = renewal.requested.map(|number| (header.boot, number));
        let counts = |request: &(Boot, u64)| {
            // A repeated request had its reply, or is late.
            *request > other.renewed && now >= self.renews_from
        };
        let Some(request) = request.filter(counts) else {
            return Renewal::default();
        };
        if other.renewed.0 != header.boot {
            // A restarted node has lost all that it borrowed before.
            other.lent = Renewals::default();
        }
        if !other.lent.hold(now) {
            self.lapses += 1;
        }
        other.has_lapsed = false;
        other.renewed = request;
        // Lengthen the loans before the borrower can learn of it.
        let until = now.saturating_add(self.terms.lent_ns());
        other.lent.renew(now, until);
        Renewal {
            requested: None,
            replied: Some(request.1),
        }
    }

    /// Records that this node has a loan of a bank to renew.
    pub(crate) fn uses(&mut self, bank: NodeId, now: u64) {
        let until = now.saturating_add(self.terms.loan_ns);
        let other = self.others.entry(bank).or_default();
        other.used_until = other.used_until.max(until);
    }

    /// Records that this node has lost count of a loan. It renews nothing until that loan is over.
    pub(crate) fn lose_count(&mut self, now: u64) {
        self.renews_from = now.saturating_add(self.terms.lent_ns());
    }

    /// Returns when a loan to a node's start ends. It was given until `until`; renewals lengthen it up to
    /// `last`.
    pub(crate) fn lent_until(&self, (to, boot): (NodeId, Boot), until: u64, last: u64) -> u64 {
        match self.others.get(&to) {
            Some(other) if other.renewed.0 == boot => other.lent.end(until, last),
            _ => until,
        }
    }

    /// Returns until when a loan to a node's start lasts at least, provided that renewals go on.
    pub(crate) fn lent_calm_until(
        &self,
        now: u64,
        (to, boot): (NodeId, Boot),
        until: u64,
        last: u64,
    ) -> u64 {
        match self.others.get(&to) {
            Some(other) if other.renewed.0 == boot => other.lent.calm(now, until, last),
            _ => until,
        }
    }

    /// Returns when a bank's loan ends. It was given until `until`; renewals lengthen it up to `last`.
    pub(crate) fn borrowed_until(&self, bank: NodeId, until: u64, last: u64) -> u64 {
        let other = self.others.get(&bank);
        other.map_or(until, |other| other.borrowed.end(until, last))
    }

    /// Returns whether a bank's loans are being renewed.
    pub(crate) fn is_renewed(&self, bank: NodeId, now: u64) -> bool {
        let other = self.others.get(&bank);
        other.is_some_and(|other| other.borrowed.hold(now))
    }
}

impl Other {
    fn is_renewal_due(&self, now: u64, terms: &Terms) -> bool {
        let pause = if self.has_reply {
            terms.renewal_pause_ns()
        } else {
            terms.patience_ns
        };
        self.number == 0 || now.saturating_sub(self.requested_at) >= pause
    }

    /// Renews the borrowed loans, if this replies to the last request in time.
    fn take_renewal(&mut self, now: u64, number: u64, terms: &Terms) {
        let until = self.requested_at.saturating_add(terms.loan_ns);
        if !self.has_reply && number == self.number && now < until {
            self.has_reply = true;
            self.borrowed.renew(now, until);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BANK: NodeId = NodeId(0);
    const BORROWER: NodeId = NodeId(1);
    const TERMS: Terms = Terms::DEFAULT;

    fn memory(id: NodeId, boot: u64) -> Memory {
        Memory::new(0, id, Boot(boot), TERMS, 2)
    }

    fn requested(number: u64) -> Renewal {
        Renewal {
            requested: Some(number),
            replied: None,
        }
    }

    /// Makes the bank handle a renewal from a start of the borrower; returns the number of its reply.
    fn replied(bank: &mut Memory, now: u64, boot: u64, number: u64) -> Option<u64> {
        let header = Header {
            from: BORROWER,
            to: BANK,
            boot: Boot(boot),
            to_boot: bank.boot,
        };
        bank.receive_renewal(now, &header, &requested(number))
            .replied
    }

    #[test]
    fn a_renewal_counts_once_and_only_for_the_start_that_requested_it() {
        let lent = TERMS.lent_ns();
        let mut bank = memory(BANK, 5);
        // Loans of an earlier start are unknown.
        assert_eq!(replied(&mut bank, lent - 1, 7, 1), None);
        assert_eq!(replied(&mut bank, lent, 7, 1), Some(1));
        assert_eq!(replied(&mut bank, lent, 7, 1), None);
        assert_eq!(replied(&mut bank, lent, 7, 3), Some(3));
        assert_eq!(replied(&mut bank, lent, 7, 2), None);
        let end = |bank: &Memory, boot| bank.lent_until((BORROWER, Boot(boot)), lent + 1, u64::MAX);
        assert_eq!([end(&bank, 6), end(&bank, 7)], [lent + 1, 2 * lent]);
        assert_eq!(replied(&mut bank, lent, 8, 1), Some(1));
        assert_eq!(replied(&mut bank, lent, 7, 9), None);
        assert_eq!([end(&bank, 7), end(&bank, 8)], [lent + 1, 2 * lent]);
        // A loan that the bank has lost count of is over before it renews any loan.
        bank.lose_count(2 * lent);
        assert_eq!(replied(&mut bank, 3 * lent - 1, 8, 2), None);
        assert_eq!(replied(&mut bank, 3 * lent, 8, 3), Some(3));
    }

    #[test]
    fn a_borrower_takes_the_reply_to_its_last_renewal_in_time() {
        let mut borrower = memory(BORROWER, 7);
        let header = Header {
            from: BANK,
            to: BORROWER,
            boot: Boot(5),
            to_boot: Boot(7),
        };
        assert_eq!(borrower.request_renewals(0), []);
        borrower.uses(BANK, 0);
        assert_eq!(borrower.request_renewals(0), [(BANK, requested(1))]);
        let patience = TERMS.patience_ns;
        assert_eq!(borrower.request_renewals(patience - 1), []);
        assert_eq!(borrower.request_renewals(patience), [(BANK, requested(2))]);
        let mut takes = |now: u64, number: u64| {
            let renewal = Renewal {
                requested: None,
                replied: Some(number),
            };
            borrower.receive_renewal(now, &header, &renewal);
            borrower.borrowed_until(BANK, now + 1, u64::MAX)
        };
        assert_eq!(takes(patience + 5, 1), patience + 6);
        // The time runs from the request.
        assert_eq!(takes(patience + 5, 2), patience + TERMS.loan_ns);
        // A node without loans requests no renewal.
        assert_eq!(borrower.request_renewals(patience + TERMS.loan_ns), []);
    }
}
