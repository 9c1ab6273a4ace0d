//! The messages between the leading node and the others.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{
    error::CommandError,
    status::{NodePart, RolloutId, RolloutStage},
};
use crate::{Name, replicated::MOST_AHEAD_MS};

/// The most canaries that a command names.
pub const MOST_CANARIES: usize = 64;

/// The greatest age of a command, in milliseconds, between the clocks of the sender and the receiver.
pub const MOST_OLD_MS: u64 = 60_000;

/// How long a node may hold a policy without another command, in nanoseconds.
pub const HOLD_NS: RangeInclusive<u64> = 5_000_000_000..=1_800_000_000_000;

/// The latest time of a command after the beginning of its rollout, in milliseconds: longer than all stages
/// together.
const LONGEST_MS: u64 = 3 * 3_600_000;

/// A command: the stage that all nodes follow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Its rollout.
    pub rollout: RolloutId,
    /// Rises with each command of the rollout.
    pub number: u64,
    /// When it was sent, in milliseconds since 1970, by the leading node's clock.
    pub ms: u64,
    /// The SHA-256 of the file, in hexadecimal.
    pub sha256: String,
    /// How long after this command a node goes back by itself, in nanoseconds.
    pub hold_ns: u64,
    /// The stage of the rollout.
    pub stage: RolloutStage,
    /// The nodes that take the file first.
    pub canaries: Vec<Name>,
}

/// A node's reply to commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// The rollout.
    pub rollout: RolloutId,
    /// The node.
    pub node: Name,
    /// Rises with each reply of the node.
    pub number: u64,
    /// The node's part.
    pub part: NodePart,
    /// An operator on that node wants all nodes to keep the file (`true`) or to go back; `None`: neither.
    pub wish: Option<bool>,
}

impl Command {
    /// Checks the command by itself, at a time in milliseconds since 1970.
    pub(crate) fn check(&self, now_ms: u64) -> Result<(), CommandError> {
        // The leading node may have taken its rollout id from a clock that was ahead.
        let until_begun_ms = self.rollout.ms.saturating_sub(self.ms);
        let since_begun_ms = self.ms.saturating_sub(self.rollout.ms);
        if now_ms.saturating_sub(self.ms) > MOST_OLD_MS {
            Err(CommandError::Old)
        } else if self.ms.saturating_sub(now_ms) > MOST_AHEAD_MS {
            Err(CommandError::Ahead)
        } else if until_begun_ms > MOST_AHEAD_MS || since_begun_ms > LONGEST_MS {
            Err(CommandError::Long)
        } else if !HOLD_NS.contains(&self.hold_ns) {
            Err(CommandError::Hold)
        } else if self.canaries.len() > MOST_CANARIES {
            Err(CommandError::Names)
        } else {
            Ok(())
        }
    }
}

/// Returns the SHA-256 of a file, in hexadecimal.
#[must_use]
pub fn file_digest(file: &[u8]) -> String {
    format!("{:x}", Sha256::digest(file))
}
