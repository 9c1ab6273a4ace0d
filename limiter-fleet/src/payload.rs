//! Payloads of messages, each about one budget. They may be lost, late, repeated or reordered.

use serde::{Deserialize, Serialize};

use crate::Share;

/// The number of a start of a node's daemon, higher than at all its earlier starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Boot(pub u64);

/// A request to a bank for a loan, or for a different one in place of its current loan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The number of the request, unique within this start of the node. The borrower promises to take no
    /// reply to an earlier request about the same budget.
    pub number: u64,
    /// The most of the bank's loan that it still uses.
    pub keeps: Share,
    /// The tokens that it returns with the rest, in thousandths.
    pub returned_millitokens: u64,
    /// The share that it wants of this bank.
    pub wants: Share,
}

/// A bank lends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loan {
    /// The number of the request.
    pub number: u64,
    /// The borrower's total share of this bank from now on.
    pub share: Share,
    /// The tokens that come with it, in thousandths.
    pub millitokens: u64,
}

/// A renewal of all loans between two nodes at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renewal {
    /// The borrower requests that the bank renew all its loans: the number of the request, unique within this
    /// start of the node.
    pub requested: Option<u64>,
    /// The bank has renewed all loans to the borrower: the number of its request.
    pub replied: Option<u64>,
}

impl Renewal {
    /// Returns whether it is empty.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.requested.is_none() && self.replied.is_none()
    }
}

/// A request, a reply or a hint about one budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Payload {
    /// A request to a bank.
    Request(Request),
    /// A bank lends.
    Loan(Loan),
    /// A bank's hint: it would now reply with this share. It promises nothing.
    Changed(Share),
}
