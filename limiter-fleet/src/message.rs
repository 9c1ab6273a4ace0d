//! The nodes' messages about one budget. They may be lost, late, repeated, and come in any order.

use serde::{Deserialize, Serialize};

use crate::Share;

/// A number for each start of a node's daemon, higher than those of all earlier starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Boot(pub u64);

/// A node asks a bank for a loan, or for another one in place of that which it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The number of this question, among all of this start of the node. The borrower promises to take no
    /// loan that answers an earlier one about the same budget.
    pub number: u64,
    /// The most that it still uses of what the bank has lent to it.
    pub keeps: Share,
    /// The tokens that it gives back with the rest, in thousandths.
    pub returned_millitokens: u64,
    /// How much it wants to have of that bank.
    pub wants: Share,
}

/// A bank lends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loan {
    /// The number of the question.
    pub number: u64,
    /// How much the borrower has of that bank from now on, in all.
    pub share: Share,
    /// The tokens that come with it, in thousandths.
    pub millitokens: u64,
}

/// Words about all loans between two nodes at once, whatever they are of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renewal {
    /// The borrower asks the bank to renew all that it has lent to it: the number of that question, among all
    /// of this start of the node.
    pub asked: Option<u64>,
    /// The bank has renewed all that it counts as lent to the other node: the number of that one's question.
    pub answered: Option<u64>,
}

impl Renewal {
    /// Returns whether it says nothing.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.asked.is_none() && self.answered.is_none()
    }
}

/// A question, an answer, or a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// A node asks a bank.
    Ask(Ask),
    /// A bank lends.
    Loan(Loan),
    /// A bank says that another question would now be answered otherwise, and with what. It promises nothing.
    Changed(Share),
}
