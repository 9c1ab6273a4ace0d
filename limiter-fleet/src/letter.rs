//! What travels from one node to another: questions and answers on many budgets at once.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{Ask, Loan};

/// The name of one owner's budget of one limit, the same on all nodes: a digest of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Budget(pub [u8; 16]);

impl Budget {
    /// Returns the name of the budget that these bytes describe: their digest, SHA-256 cut to half.
    #[must_use]
    pub fn of(description: &[u8]) -> Self {
        let mut name = [0; 16];
        for (to, byte) in name.iter_mut().zip(Sha256::digest(description)) {
            *to = byte;
        }
        Self(name)
    }
}

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
