//! The nodes' messages. They may be lost, late, repeated, and come in any order.

use serde::{Deserialize, Serialize};

use crate::{Share, members::NodeId};

/// A number for each start of a node's daemon, higher than those of all earlier starts, and above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Boot(pub u64);

/// A node asks a bank for a loan, or for another one in place of that which it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The node that asks.
    pub from: NodeId,
    /// The bank.
    pub to: NodeId,
    /// The borrower's.
    pub boot: Boot,
    /// The bank's, as its last loan told it; 0: none has. What is given back is for that start alone: or a
    /// question that is repeated to another would give it back again.
    pub bank_boot: Boot,
    /// The number of this question to this bank. The borrower promises to take no loan that answers an
    /// earlier one.
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
    /// The bank.
    pub from: NodeId,
    /// The borrower.
    pub to: NodeId,
    /// The borrower's, from the question.
    pub boot: Boot,
    /// The bank's.
    pub bank_boot: Boot,
    /// The number of the question.
    pub number: u64,
    /// How much the borrower has of that bank from now on, in all.
    pub share: Share,
    /// The tokens that come with it, in thousandths.
    pub millitokens: u64,
}
