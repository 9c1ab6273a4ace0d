//! Errors of commands and of requests.

use thiserror::Error;

use super::{leader::MOST_FILE, message::MOST_CANARIES};
use crate::Name;

/// Why a command is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CommandError {
    /// It is too old.
    #[error("an order of a push is more than a minute old: it is repeated, or a clock is wrong")]
    Old,
    /// A command with its number, or a higher one, was followed.
    #[error("an order of a push is repeated")]
    Repeated,
    /// It is from the future.
    #[error("an order of a push is more than a minute ahead: a clock is wrong")]
    Ahead,
    /// Its rollout began too long before it, or after it.
    #[error("an order of a push that began long ago, or has not begun")]
    Long,
    /// `hold_ns` is out of range.
    #[error("an order of a push without a time to go back by itself")]
    Hold,
    /// It has too many names.
    #[error("an order of a push with too many names")]
    Names,
    /// A newer rollout is known.
    #[error("an order of an older push than one that is known")]
    Older,
    /// Another rollout is in force and not confirmed yet.
    #[error("another push waits to be confirmed")]
    Busy,
    /// Its file differs from the file of earlier commands of the rollout.
    #[error("an order of a push with another file than before")]
    OtherFile,
    /// The node has not checked the file: it missed the beginning of the rollout.
    #[error("an order of a push whose beginning was not received")]
    Unchecked,
}

impl CommandError {
    /// Returns its name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Old | Self::Repeated => "push_old",
            Self::Ahead => "push_ahead",
            Self::Long | Self::Hold | Self::Names | Self::OtherFile => "push_wrong",
            Self::Older => "push_older",
            Self::Busy => "push_busy",
            Self::Unchecked => "push_unchecked",
        }
    }
}

/// Why a request about a rollout fails.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RolloutError {
    /// Without the store, no node would receive the rollout.
    #[error("the fleet's store is not there: look at `limiter fleet status`")]
    NoStore,
    /// Only one rollout runs at a time.
    #[error("node {0} pushes a policy: wait until that is over")]
    UnderWay(Name),
    /// The file is too long.
    #[error("the file has more than {MOST_FILE} bytes, the most that is pushed")]
    TooLong,
    /// A time is out of range.
    #[error("the time to confirm must be from 5s to 30m, that of the canaries at most 30m")]
    Times,
    /// There are too many canaries.
    #[error("name at most {MOST_CANARIES} canaries")]
    TooMany,
    /// No node of the fleet is alive.
    #[error("no node has sent a heartbeat: wait some seconds, and look at `limiter fleet status`")]
    Nobody,
    /// No node of that name is alive.
    #[error("no node {0} sends heartbeats: look at `limiter fleet status`")]
    Unknown(Name),
    /// There is no rollout.
    #[error("no policy is pushed, and none was from here since the daemon started")]
    Nothing,
    /// No rollout waits for confirmation.
    #[error("no pushed policy waits to be confirmed: run it once all nodes have it")]
    NotWaiting,
    /// It is too late to go back.
    #[error("the push is over, or decided")]
    Decided,
}
