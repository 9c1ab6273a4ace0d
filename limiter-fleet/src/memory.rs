//! A node remembers this of the others, beside budgets: so that it may forget budgets.
//!
//! A question must count once. A bank remembers the last one of each borrower about each budget; what it
//! forgets of that it keeps as one number for each borrower, as questions are numbered over all budgets. What
//! an earlier start of the bank has heard is known to nobody; so a question names the start that it is to.

use std::collections::BTreeMap;

use crate::{Boot, NodeId, Terms};

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
}

impl Memory {
    /// Begins as a node among so many. `boot` is higher than in all earlier starts of this node.
    #[must_use]
    pub const fn new(id: NodeId, boot: Boot, terms: Terms, nodes: u32) -> Self {
        Self {
            id,
            boot,
            terms,
            nodes,
            asked: 0,
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
}
