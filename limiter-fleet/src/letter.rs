//! What travels from one node to another: questions and answers on many budgets at once.

use serde::{Deserialize, Serialize};

use crate::{Ask, Loan};

/// The name of one owner's budget of one limit, the same on all nodes: a digest of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Budget(pub [u8; 16]);

/// What is said of one budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The budget.
    pub budget: Budget,
    /// What is said.
    pub message: Message,
}

/// A question or an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// A node asks a bank.
    Ask(Ask),
    /// A bank lends.
    Loan(Loan),
}
