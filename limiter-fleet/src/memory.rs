//! A node remembers this of the others, beside budgets: so that it may forget budgets.
//!
//! A question must count once. A bank remembers the last one of each borrower about each budget; what it
//! forgets of that it keeps as one number for each borrower, as questions are numbered over all budgets. What
//! an earlier start of the bank has heard is known to nobody; so a question names the start that it is to.
//!
//! Loans between two nodes are renewed together, whatever they are of: a bank lengthens all that it counts as lent
//! to the borrower, and then says so. It cannot lengthen a loan that it has lost count of: so then it renews
//! nothing until that is over.

use std::collections::BTreeMap;

use crate::{Boot, NodeId, Renewal, Terms, renewals::Renewals};

/// The first line of a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The node that has written it.
    pub from: NodeId,
    /// The node that it is to.
    pub to: NodeId,
    /// The writer's start.
    pub boot: Boot,
    /// The other's, as the writer has last heard of it; 0: it has not.
    pub to_boot: Boot,
}

/// The worth of a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hearing {
    /// Nothing: it is not to this node, or from nobody.
    None,
    /// It is to another start of this node: its notes say nothing, but an empty letter may tell its writer
    /// which start there is.
    OtherStart,
    /// Its notes count.
    Notes,
}

/// The part of others that a node remembers.
#[derive(Clone, Debug)]
pub struct Memory {
    id: NodeId,
    boot: Boot,
    terms: Terms,
    /// How many nodes there are.
    nodes: u32,
    /// The number of the last question to anybody about anything.
    asked: u64,
    /// From when on this node renews what it has lent: what it has lost count of is over.
    renews_from: u64,
    /// How often renewals of what this node has lent have ceased.
    lapses: u64,
    others: BTreeMap<NodeId, Other>,
}

/// Another node.
#[derive(Clone, Copy, Debug, Default)]
struct Other {
    /// Its start, as it has last said, and when it first did.
    boot: Boot,
    since: u64,
    /// The highest of its questions that is forgotten.
    forgotten: (Boot, u64),
    /// Its last question for a renewal, and the renewals of what that start has borrowed here.
    renewed: (Boot, u64),
    lent: Renewals,
    has_lapsed: bool,
    /// This node's own last question for one, when it was asked, and the renewals of what is borrowed there.
    number: u64,
    asked_at: u64,
    is_answered: bool,
    borrowed: Renewals,
    /// Until when this node has something there to be renewed, as far as is known.
    used_until: u64,
}

impl Memory {
    /// Begins as a node among so many, with nothing known of what an earlier start has lent. `boot` is higher than in all
    /// earlier starts of this node.
    #[must_use]
    pub const fn new(now: u64, id: NodeId, boot: Boot, terms: Terms, nodes: u32) -> Self {
        Self {
            id,
            boot,
            terms,
            nodes,
            asked: 0,
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

    /// Returns the header of a letter to a node.
    #[must_use]
    pub fn header(&self, to: NodeId) -> Header {
        Header {
            from: self.id,
            to,
            boot: self.boot,
            to_boot: self.others.get(&to).map_or(Boot(0), |other| other.boot),
        }
    }

    /// Hears the header of a letter: its notes count if so is said.
    pub fn hear(&mut self, now: u64, header: &Header) -> Hearing {
        if header.to != self.id || header.from == self.id || header.from.0 >= self.nodes {
            return Hearing::None;
        }
        let other = self.others.entry(header.from).or_default();
        if other.boot != header.boot {
            other.boot = header.boot;
            other.since = now;
        }
        if header.to_boot == self.boot {
            Hearing::Notes
        } else {
            Hearing::OtherStart
        }
    }

    /// Returns whether a question with that number may be about a budget that is not known: it is later than
    /// all that are forgotten.
    #[must_use]
    pub fn may_be_new(&self, header: &Header, number: u64) -> bool {
        let forgotten = self.others.get(&header.from).map(|other| other.forgotten);
        forgotten.is_none_or(|forgotten| (header.boot, number) > forgotten)
    }

    /// Returns the number of another question.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.asked += 1;
        self.asked
    }

    /// Returns since when the start of a node is known that it has now.
    pub(crate) fn known_since(&self, node: NodeId) -> u64 {
        self.others.get(&node).map_or(0, |other| other.since)
    }

    /// Notes that a question of a node is forgotten.
    pub(crate) fn forget(&mut self, from: NodeId, question: (Boot, u64)) {
        let other = self.others.entry(from).or_default();
        other.forgotten = other.forgotten.max(question);
    }

    /// Asks for the renewals that are due; returns of whom, and the numbers of the questions.
    pub fn ask_renewals(&mut self, now: u64) -> Vec<(NodeId, Renewal)> {
        let mut asks = Vec::new();
        for (node, other) in &mut self.others {
            if now >= other.used_until || !other.is_renewal_due(now, &self.terms) {
                continue;
            }
            self.asked += 1;
            (other.number, other.asked_at, other.is_answered) = (self.asked, now, false);
            let renewal = Renewal {
                asked: Some(self.asked),
                answered: None,
            };
            asks.push((*node, renewal));
        }
        asks
    }

    /// Returns how often renewals of what this node has lent have ceased by now: until that changes, what is renewed lasts.
    pub fn lapses(&mut self, now: u64) -> u64 {
        for other in self.others.values_mut() {
            if !other.has_lapsed && !other.lent.hold(now) {
                other.has_lapsed = true;
                self.lapses += 1;
            }
        }
        self.lapses
    }

    /// Hears what a letter whose notes count says of renewals; returns what is to be answered.
    pub fn hear_renewal(&mut self, now: u64, header: &Header, renewal: &Renewal) -> Renewal {
        let other = self.others.entry(header.from).or_default();
        if let Some(number) = renewal.answered {
            other.take_renewal(now, number, &self.terms);
        }
        let question = renewal.asked.map(|number| (header.boot, number));
        let counts = |question: &(Boot, u64)| {
            // A question that comes again was answered, or is late.
            *question > other.renewed && now >= self.renews_from
        };
        let Some(question) = question.filter(counts) else {
            return Renewal::default();
        };
        if other.renewed.0 != header.boot {
            // A node that has begun anew has nothing of what it borrowed before.
            other.lent = Renewals::default();
        }
        if !other.lent.hold(now) {
            self.lapses += 1;
        }
        other.has_lapsed = false;
        other.renewed = question;
        // Before anybody can hear of it.
        let until = now.saturating_add(self.terms.lent_ns());
        other.lent.renew(now, until);
        Renewal {
            asked: None,
            answered: Some(question.1),
        }
    }

    /// Notes that this node has something of a bank that is to be renewed.
    pub(crate) fn uses(&mut self, bank: NodeId, now: u64) {
        let until = now.saturating_add(self.terms.loan_ns);
        let other = self.others.entry(bank).or_default();
        other.used_until = other.used_until.max(until);
    }

    /// Notes that this node has lost count of what it has lent. It may say nothing of that until it is over.
    pub(crate) fn lose_count(&mut self, now: u64) {
        self.renews_from = now.saturating_add(self.terms.lent_ns());
    }

    /// Returns when a loan to a start of a node ends that was given until a time, and may be renewed until the
    /// `last`.
    pub(crate) fn lent_until(&self, (to, boot): (NodeId, Boot), until: u64, last: u64) -> u64 {
        match self.others.get(&to) {
            Some(other) if other.renewed.0 == boot => other.lent.end(until, last),
            _ => until,
        }
    }

    /// Returns until when a loan to a start of a node lasts at least, unless a renewal ceases.
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

    /// Returns when a loan of a bank ends that was given until a time, and may be renewed until the `last`.
    pub(crate) fn borrowed_until(&self, bank: NodeId, until: u64, last: u64) -> u64 {
        let other = self.others.get(&bank);
        other.map_or(until, |other| other.borrowed.end(until, last))
    }

    /// Returns whether loans of a bank are being renewed.
    pub(crate) fn is_renewed(&self, bank: NodeId, now: u64) -> bool {
        let other = self.others.get(&bank);
        other.is_some_and(|other| other.borrowed.hold(now))
    }
}

impl Other {
    fn is_renewal_due(&self, now: u64, terms: &Terms) -> bool {
        let pause = if self.is_answered {
            terms.renewal_pause_ns()
        } else {
            terms.patience_ns
        };
        self.number == 0 || now.saturating_sub(self.asked_at) >= pause
    }

    /// Renews what is borrowed, if the last question is answered in time.
    fn take_renewal(&mut self, now: u64, number: u64, terms: &Terms) {
        let until = self.asked_at.saturating_add(terms.loan_ns);
        if !self.is_answered && number == self.number && now < until {
            self.is_answered = true;
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

    fn asked(number: u64) -> Renewal {
        Renewal {
            asked: Some(number),
            answered: None,
        }
    }

    /// Has the bank hear a renewal by a start of the borrower; returns the number that it answers.
    fn answered(bank: &mut Memory, now: u64, boot: u64, number: u64) -> Option<u64> {
        let header = Header {
            from: BORROWER,
            to: BANK,
            boot: Boot(boot),
            to_boot: bank.boot,
        };
        bank.hear_renewal(now, &header, &asked(number)).answered
    }

    #[test]
    fn a_renewal_counts_once_and_only_for_the_start_that_asked() {
        let lent = TERMS.lent_ns();
        let mut bank = memory(BANK, 5);
        // Nobody knows what an earlier start has lent.
        assert_eq!(answered(&mut bank, lent - 1, 7, 1), None);
        assert_eq!(answered(&mut bank, lent, 7, 1), Some(1));
        assert_eq!(answered(&mut bank, lent, 7, 1), None);
        assert_eq!(answered(&mut bank, lent, 7, 3), Some(3));
        assert_eq!(answered(&mut bank, lent, 7, 2), None);
        let end = |bank: &Memory, boot| bank.lent_until((BORROWER, Boot(boot)), lent + 1, u64::MAX);
        assert_eq!([end(&bank, 6), end(&bank, 7)], [lent + 1, 2 * lent]);
        assert_eq!(answered(&mut bank, lent, 8, 1), Some(1));
        assert_eq!(answered(&mut bank, lent, 7, 9), None);
        assert_eq!([end(&bank, 7), end(&bank, 8)], [lent + 1, 2 * lent]);
        // A loan that it has lost count of is over before it renews anything.
        bank.lose_count(2 * lent);
        assert_eq!(answered(&mut bank, 3 * lent - 1, 8, 2), None);
        assert_eq!(answered(&mut bank, 3 * lent, 8, 3), Some(3));
    }

    #[test]
    fn a_borrower_takes_the_answer_to_its_last_renewal_in_time() {
        let mut borrower = memory(BORROWER, 7);
        let header = Header {
            from: BANK,
            to: BORROWER,
            boot: Boot(5),
            to_boot: Boot(7),
        };
        assert_eq!(borrower.ask_renewals(0), []);
        borrower.uses(BANK, 0);
        assert_eq!(borrower.ask_renewals(0), [(BANK, asked(1))]);
        let patience = TERMS.patience_ns;
        assert_eq!(borrower.ask_renewals(patience - 1), []);
        assert_eq!(borrower.ask_renewals(patience), [(BANK, asked(2))]);
        let mut takes = |now: u64, number: u64| {
            let renewal = Renewal {
                asked: None,
                answered: Some(number),
            };
            borrower.hear_renewal(now, &header, &renewal);
            borrower.borrowed_until(BANK, now + 1, u64::MAX)
        };
        assert_eq!(takes(patience + 5, 1), patience + 6);
        // From when it was asked for.
        assert_eq!(takes(patience + 5, 2), patience + TERMS.loan_ns);
        // A node that has nothing asks for nothing.
        assert_eq!(borrower.ask_renewals(patience + TERMS.loan_ns), []);
    }
}
