//! Requests and answers about bans.

use std::{fmt, net::IpAddr};

use ipnet::IpNet;
use jiff::Timestamp;
use limiter_common::ban::MAX_TEXT;
use limiter_policy::policy::bans::Origin;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Bans to make or lift, in this order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BanChanges {
    /// At most [`MAX_CHANGES`](super::MAX_CHANGES).
    pub changes: Vec<BanChange>,
    /// Whether to ban even addresses that this machine needs to stay reachable, and excluded ones.
    pub force: bool,
    /// Whether an operator named all of them, as opposed to a stream. Then the changes are logged; and
    /// if one is refused that `force` would make, the answer is an error and nothing changes.
    pub together: bool,
    /// The SSH session that the request comes from.
    pub session: Option<Session>,
}

/// The SSH session that a command was started from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The other end.
    pub peer: IpAddr,
}

/// A change of a ban.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BanChange {
    /// Make a ban.
    Ban(BanRequest),
    /// Lift bans.
    Unban(UnbanRequest),
}

impl BanChange {
    /// Returns the prefix that it concerns.
    #[must_use]
    pub const fn prefix(&self) -> IpNet {
        match self {
            Self::Ban(request) => request.prefix,
            Self::Unban(request) => request.prefix,
        }
    }
}

/// A ban to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BanRequest {
    /// The address or the range.
    pub prefix: IpNet,
    /// How long, in nanoseconds; `None`: until the ban is lifted.
    pub for_ns: Option<u64>,
    /// The reason.
    pub reason: BanReason,
    /// Who bans; not [`Origin::AUTOMATIC`].
    pub origin: Origin,
    /// Whether a ban of the origin stays that ends no earlier, since the origin has several reasons
    /// to ban the prefix, each with an end of its own.
    #[serde(default)]
    pub keeps_longer: bool,
}

/// Bans to lift.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnbanRequest {
    /// The address or the range; those within it keep their bans.
    pub prefix: IpNet,
    /// The origin whose ban is lifted; `None`: everybody's.
    pub origin: Option<Origin>,
}

/// The outcomes of changes.
#[derive(Debug, Serialize, Deserialize)]
pub struct BansChanged {
    /// One for each change, in order.
    pub outcomes: Vec<BanOutcome>,
    /// Whether there are new bans that end with the daemon, because it has neither pins nor a state
    /// file.
    pub ends_with_daemon: bool,
}

/// The outcome of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum BanOutcome {
    /// The prefix is banned.
    Banned {
        /// How often its origin banned it by now, as far as is remembered.
        times: u16,
        /// Whether this replaced a ban of the origin in force.
        replaced: bool,
        /// Another origin, whose ban of the prefix ends later; `None`: none does.
        outlasted_by: Option<Origin>,
        /// The list that excludes the prefix, so that the ban has no effect; `None`: none does.
        excluded_by: Option<String>,
        /// The limit's ban that was lifted to make room; `None`: there was room.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        in_place_of: Option<IpNet>,
    },
    /// A ban of the origin stays, as [`BanRequest::keeps_longer`] asks.
    Outlasted,
    /// Bans of the prefix itself were lifted.
    Lifted {
        /// Their origins.
        origins: Vec<Origin>,
        /// The origins whose bans of the prefix still hold.
        still_by: Vec<Origin>,
        /// A wider prefix that is banned, so that this one is still banned.
        still_in: Option<IpNet>,
    },
    /// The prefix had no such ban of its own.
    NotBanned {
        /// The origins whose bans of the prefix hold.
        still_by: Vec<Origin>,
        /// A wider prefix that is banned, so that this one is too.
        still_in: Option<IpNet>,
    },
    /// The ban was refused.
    Refused {
        /// Why not, and what to do.
        reason: String,
    },
}

/// Selects the bans to return, a few thousand at a time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BansQuery {
    /// Only bans that contain this prefix or lie within it; `None`: all.
    pub prefix: Option<IpNet>,
    /// Only bans of this origin; `None`: of all.
    pub origin: Option<Origin>,
    /// Where to continue, from [`BansPage::next`]; `None`: at the start.
    pub position: Option<u32>,
}

/// Some bans, in no order and not a consistent snapshot.
#[derive(Debug, Serialize, Deserialize)]
pub struct BansPage {
    /// The most bans there is room for.
    pub capacity: u32,
    /// Bans in force.
    pub bans: Vec<BanStatus>,
    /// Where to continue; `None`: there are no more.
    pub next: Option<u32>,
}

/// A ban in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BanStatus {
    /// The address or range that it is for.
    pub prefix: IpNet,
    /// Who made it.
    pub origin: Origin,
    /// The limit that made it; `None`: none did.
    pub limit: Option<String>,
    /// The reason.
    pub reason: String,
    /// When it began.
    pub since: Timestamp,
    /// When it ends; `None`: not until it is lifted.
    pub until: Option<Timestamp>,
    /// Nanoseconds until it ends; `None`: not until it is lifted.
    pub ends_in_ns: Option<u64>,
    /// How often its origin banned the prefix, including this time, as far as is remembered.
    pub times: u16,
    /// The packets that bans of the prefix have dropped, whoever banned it, as long as it has been
    /// remembered.
    #[serde(default)]
    pub hits: u64,
    /// Their frames' lengths, in bytes.
    #[serde(default)]
    pub hit_bytes: u64,
    /// The list that excludes it, or the address asked about, so that the ban has no effect there;
    /// `None`: none does.
    pub excluded_by: Option<String>,
}

impl BanStatus {
    /// Returns who banned, in the words of a sentence: the limit, or the origin.
    #[must_use]
    pub fn by(&self) -> &str {
        match &self.limit {
            Some(limit) => limit,
            None if self.origin == Origin::OPERATOR => "an operator",
            None => self.origin.as_str(),
        }
    }
}

/// The reason for a ban: one short line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BanReason(String);

/// A reason was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidReason {
    /// It is too long.
    #[error("a reason has at most {MAX_TEXT} bytes, and this one has {0}")]
    TooLong(usize),
    /// It has control characters, which would garble a terminal.
    #[error("a reason is one line of text, without control characters")]
    Control,
}

impl BanReason {
    /// Makes a reason of a text, cut to the longest allowed.
    pub fn cut(text: &str) -> Result<Self, InvalidReason> {
        let end = text.floor_char_boundary(MAX_TEXT);
        text[..end].to_owned().try_into()
    }

    /// Returns the reason as text.
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
        if text.len() > MAX_TEXT {
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
