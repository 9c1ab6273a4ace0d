//! What the command line and the daemon say to each other of bans.

use std::fmt;

use ipnet::IpNet;
use jiff::Timestamp;
use limiter_common::ban::MAX_REASON;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::guard::Session;

/// The most changes of a request: with the longest reasons they are shorter than the longest
/// request.
pub const MAX_CHANGES: usize = 1_000;

/// Bans that are to be made or lifted, in this order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BanChanges {
    /// At most [`MAX_CHANGES`].
    pub changes: Vec<BanChange>,
    /// Whether also those are banned without whom this machine cannot be reached, and those who
    /// are excluded.
    pub force: bool,
    /// Whether somebody has named them all, and not a stream: nothing changes where one is refused
    /// for that, the answer is an error then; and what has changed is logged.
    pub together: bool,
    /// The SSH session of whoever wants it.
    pub session: Option<Session>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BanChange {
    /// Somebody is to be banned.
    Ban(BanRequest),
    /// The ban of a prefix is to be lifted.
    Unban(IpNet),
}

impl BanChange {
    /// Whom it is for.
    #[must_use]
    pub const fn prefix(&self) -> IpNet {
        match self {
            Self::Ban(request) => request.prefix,
            Self::Unban(prefix) => *prefix,
        }
    }
}

/// Who is to be banned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BanRequest {
    /// The address or the range.
    pub prefix: IpNet,
    /// For how many nanoseconds; `None`: until the ban is lifted.
    pub for_ns: Option<u64>,
    /// Why.
    pub reason: BanReason,
}

/// What has become of changes.
#[derive(Debug, Serialize, Deserialize)]
pub struct BansChanged {
    /// Of each, in their order.
    pub outcomes: Vec<BanOutcome>,
    /// Whether the bans end with the daemon: it neither pins nor has a state file.
    pub ends_with_daemon: bool,
}

/// What has become of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum BanOutcome {
    /// Banned.
    Banned {
        /// How often by now, as far as it is remembered.
        times: u16,
        /// Whether in place of a ban that held.
        replaced: bool,
        /// The list that excludes the prefix, so that the ban has no effect; `None`: it has.
        excluded_by: Option<String>,
        /// The ban by a limit that was lifted to make room; `None`: there was room.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        in_place_of: Option<IpNet>,
    },
    /// Not banned any more, by itself.
    Lifted {
        /// A wider prefix that is banned, so that this one still is.
        still_in: Option<IpNet>,
    },
    /// It was not banned by itself.
    NotBanned {
        /// A wider prefix that is banned, so that this one is.
        still_in: Option<IpNet>,
    },
    /// It is not banned.
    Refused {
        /// Why not, and what to do.
        reason: String,
    },
}

/// Which bans to tell: some thousand of them at once.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BansQuery {
    /// Only those that this prefix is in, and those in it; `None`: all.
    pub prefix: Option<IpNet>,
    /// Where to go on, as the answer before has told; `None`: at the start.
    pub position: Option<u32>,
}

/// Some bans, in no order and not of one moment.
#[derive(Debug, Serialize, Deserialize)]
pub struct BansPage {
    /// How many there may be.
    pub capacity: u32,
    /// Those that hold.
    pub bans: Vec<BanStatus>,
    /// Where to go on; `None`: there are no more.
    pub next: Option<u32>,
}

/// A ban that holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BanStatus {
    /// Whom it is for.
    pub prefix: IpNet,
    /// The limit that it is for; `None`: an operator's.
    pub limit: Option<String>,
    /// Why.
    pub reason: String,
    /// When it began.
    pub since: Timestamp,
    /// When it ends; `None`: when it is lifted.
    pub until: Option<Timestamp>,
    /// In how many nanoseconds it ends; `None`: when it is lifted.
    pub ends_in_ns: Option<u64>,
    /// How often the prefix was banned, this time included, as far as it is remembered.
    pub times: u16,
    /// The list that excludes it, or the address that was asked for, so that the ban has no effect
    /// there; `None`: none does.
    pub excluded_by: Option<String>,
}

/// Why somebody is banned: one short line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BanReason(String);

/// No ban has such a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidReason {
    /// It is too long.
    #[error("a reason has at most {MAX_REASON} bytes, and this one has {0}")]
    TooLong(usize),
    /// It would make a mess of the terminal.
    #[error("a reason is one line of text, without control characters")]
    Control,
}

impl BanReason {
    /// As much of a text as a reason may have.
    pub fn cut(text: &str) -> Result<Self, InvalidReason> {
        let end = text.floor_char_boundary(MAX_REASON);
        text[..end].to_owned().try_into()
    }

    /// The reason as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for BanReason {
    type Error = InvalidReason;

    fn try_from(text: String) -> Result<Self, InvalidReason> {
        if text.chars().any(char::is_control) {
            return Err(InvalidReason::Control);
        }
        if text.len() > MAX_REASON {
            return Err(InvalidReason::TooLong(text.len()));
        }
        Ok(Self(text))
    }
}

impl From<BanReason> for String {
    fn from(reason: BanReason) -> Self {
        reason.0
    }
}

impl fmt::Display for BanReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
