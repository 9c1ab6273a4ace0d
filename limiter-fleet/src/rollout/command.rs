//! Commands of the leading node.

use std::{fmt, ops::RangeInclusive, str::FromStr};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{Name, replicated::MOST_AHEAD_MS};

/// The most bytes of a file.
pub const MOST_FILE: usize = 256 * 1024;

/// The most canaries that a command names.
pub const MOST_CANARIES: usize = 64;

/// The greatest age of a command, in milliseconds, between the clocks of the sender and the receiver.
pub const MOST_OLD_MS: u64 = 60_000;

/// How long a node may hold a policy without another command, in milliseconds.
pub const HOLD_MS: RangeInclusive<u64> = 5_000..=1_800_000;

/// The latest time of a command after the beginning of its rollout, in milliseconds: longer than all stages
/// together.
const LONGEST_MS: u64 = 3 * 3_600_000;

/// The id of a rollout. A later rollout has a greater id, as far as clocks agree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RolloutId {
    /// When the rollout began, in milliseconds since 1970, by the leading node's clock.
    pub ms: u64,
    /// The leading node.
    pub node: Name,
}

impl fmt::Display for RolloutId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.ms, self.node)
    }
}

/// A text is not the id of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidRolloutId;

impl fmt::Display for InvalidRolloutId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("expected a number and the name of a node")
    }
}

impl std::error::Error for InvalidRolloutId {}

impl FromStr for RolloutId {
    type Err = InvalidRolloutId;

    fn from_str(text: &str) -> Result<Self, InvalidRolloutId> {
        let (ms, node) = text.split_once(' ').ok_or(InvalidRolloutId)?;
        Ok(Self {
            ms: ms.parse().map_err(|_| InvalidRolloutId)?,
            node: node.try_into().map_err(|_| InvalidRolloutId)?,
        })
    }
}

/// A command: the next step for all nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Its rollout.
    pub rollout: RolloutId,
    /// Rises with each command of the rollout.
    pub number: u64,
    /// When it was sent, in milliseconds since 1970, by the leading node's clock.
    pub ms: u64,
    /// The SHA-256 of the file.
    pub file: [u8; 32],
    /// How long after this command a node goes back by itself, in milliseconds.
    pub hold_ms: u64,
    /// The step.
    pub step: Step,
}

/// A step of a rollout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Report the changes that the file would make, without enforcing it.
    Check,
    /// Enforce the file, and hold it.
    Take(Recipients),
    /// Keep the file.
    Keep,
    /// Return to the earlier policy.
    Back,
}

/// The nodes that take a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Recipients {
    /// The nodes with these names.
    Some(Vec<Name>),
    /// All nodes that have reported they would.
    All,
}

impl Recipients {
    /// Returns whether a node is among them.
    #[must_use]
    pub fn contain(&self, node: &Name) -> bool {
        match self {
            Self::Some(nodes) => nodes.contains(node),
            Self::All => true,
        }
    }
}

/// Why a command is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandError {
    /// It is too old.
    Old,
    /// It is from the future.
    Ahead,
    /// Its rollout began too long before it, or after it.
    Long,
    /// `hold_ms` is out of range.
    Hold,
    /// It has too many names.
    Names,
    /// A newer rollout is known.
    Older,
    /// Another rollout is in force and not confirmed yet.
    Busy,
    /// Its file differs from the file of earlier commands of the rollout.
    OtherFile,
    /// The node has not checked the file: it missed the beginning of the rollout.
    Unchecked,
}

impl CommandError {
    /// Returns its name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Old => "push_old",
            Self::Ahead => "push_ahead",
            Self::Long | Self::Hold | Self::Names | Self::OtherFile => "push_wrong",
            Self::Older => "push_older",
            Self::Busy => "push_busy",
            Self::Unchecked => "push_unchecked",
        }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Old => {
                "an order of a push is more than a minute old: it is repeated, or a clock is wrong"
            }
            Self::Ahead => "an order of a push is more than a minute ahead: a clock is wrong",
            Self::Long => "an order of a push that began long ago, or has not begun",
            Self::Hold => "an order of a push without a time to go back by itself",
            Self::Names => "an order of a push with too many names",
            Self::Older => "an order of an older push than one that is known",
            Self::Busy => "another push waits to be confirmed",
            Self::OtherFile => "an order of a push with another file than before",
            Self::Unchecked => "an order of a push whose beginning was not received",
        })
    }
}

impl std::error::Error for CommandError {}

impl Command {
    /// Checks the command by itself, at a time in milliseconds since 1970.
    ///
    /// # Errors
    ///
    /// The command must not be followed.
    pub fn check(&self, now_ms: u64) -> Result<(), CommandError> {
        if now_ms.saturating_sub(self.ms) > MOST_OLD_MS {
            return Err(CommandError::Old);
        }
        if self.ms.saturating_sub(now_ms) > MOST_AHEAD_MS {
            return Err(CommandError::Ahead);
        }
        // The leading node may have taken its rollout id from a clock that was ahead.
        let begun = self.rollout.ms.saturating_sub(self.ms);
        if begun > MOST_AHEAD_MS || self.ms.saturating_sub(self.rollout.ms) > LONGEST_MS {
            return Err(CommandError::Long);
        }
        if !HOLD_MS.contains(&self.hold_ms) {
            return Err(CommandError::Hold);
        }
        match &self.step {
            Step::Take(Recipients::Some(names)) if names.len() > MOST_CANARIES => {
                Err(CommandError::Names)
            }
            _ => Ok(()),
        }
    }

    /// Returns whether the command decides the rollout.
    #[must_use]
    pub const fn is_last(&self) -> bool {
        matches!(self.step, Step::Keep | Step::Back)
    }
}

/// Returns the SHA-256 of a file.
#[must_use]
pub fn file_digest(file: &[u8]) -> [u8; 32] {
    Sha256::digest(file).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_700_000_000_000;

    fn command(change: impl FnOnce(&mut Command)) -> Result<(), CommandError> {
        let mut command = Command {
            rollout: RolloutId {
                ms: NOW,
                node: "a".try_into().unwrap(),
            },
            number: 1,
            ms: NOW,
            file: [0; 32],
            hold_ms: 60_000,
            step: Step::Check,
        };
        change(&mut command);
        command.check(NOW)
    }

    #[test]
    fn only_fresh_commands_are_followed() {
        let changed: [(fn(&mut Command), _); 6] = [
            (|_| {}, Ok(())),
            (|command| command.ms -= MOST_OLD_MS, Ok(())),
            (
                |command| command.ms -= MOST_OLD_MS + 1,
                Err(CommandError::Old),
            ),
            (
                |command| command.ms += MOST_AHEAD_MS + 1,
                Err(CommandError::Ahead),
            ),
            (
                |command| command.rollout.ms -= LONGEST_MS + 1,
                Err(CommandError::Long),
            ),
            (
                |command| command.rollout.ms += MOST_AHEAD_MS + 1,
                Err(CommandError::Long),
            ),
        ];
        for (change, expected) in changed {
            assert_eq!(command(change), expected);
        }
        for hold_ms in [0, 4_999, 1_800_001, u64::MAX] {
            assert_eq!(
                command(|command| command.hold_ms = hold_ms),
                Err(CommandError::Hold)
            );
        }
        let names = vec!["a".try_into().unwrap(); MOST_CANARIES + 1];
        let step = Step::Take(Recipients::Some(names));
        assert_eq!(
            command(|command| command.step = step),
            Err(CommandError::Names)
        );
    }

    #[test]
    fn a_rollout_has_a_name() {
        let rollout = RolloutId {
            ms: NOW,
            node: "fra-1".try_into().unwrap(),
        };
        assert_eq!(rollout.to_string().parse(), Ok(rollout));
        for wrong in ["", "1", "x a", "1 ", "1 A", "-1 a"] {
            assert_eq!(wrong.parse::<RolloutId>(), Err(InvalidRolloutId), "{wrong}");
        }
    }
}
