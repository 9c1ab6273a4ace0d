//! Requests and responses about bans.

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
    /// Whether to ban even excluded addresses and addresses that this machine needs to stay reachable.
    pub force: bool,
    /// Whether an operator named all of them, as opposed to a stream. The daemon then logs the changes. If it
    /// refuses a change that `force` would allow, the response is an error and nothing changes.
    pub together: bool,
    /// The SSH session of the requesting command.
    pub session: Option<Session>,
}

/// The SSH session that a command was started from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The peer's address.
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
    /// Returns the affected prefix.
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
    /// The banning origin; never [`Origin::AUTOMATIC`].
    pub origin: Origin,
    /// Whether a ban of the same origin stays if it ends no earlier. An origin may have several reasons to ban
    /// a prefix, each with its own end.
    #[serde(default)]
    pub keeps_longer: bool,
}

/// Bans to lift.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnbanRequest {
    /// The address or the range; narrower prefixes keep their bans.
    pub prefix: IpNet,
    /// Lifts only this origin's ban; `None`: the bans of all origins.
    pub origin: Option<Origin>,
}

/// The outcomes of changes.
#[derive(Debug, Serialize, Deserialize)]
pub struct BanResults {
    /// One for each change, in order.
    pub outcomes: Vec<BanOutcome>,
    /// Whether new bans end with the daemon, because it has neither pins nor a state file.
    pub ends_with_daemon: bool,
}

/// The outcome of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum BanOutcome {
    /// The prefix is banned.
    Banned {
        /// How often its origin has banned it by now, as far as is remembered.
        times: u16,
        /// Whether this replaced a ban in force of the same origin.
        replaced: bool,
        /// Another origin with a longer ban of the prefix; `None`: there is none.
        outlasted_by: Option<Origin>,
        /// The list that excludes the prefix, so that the ban has no effect; `None`: no list does.
        excluded_by: Option<String>,
        /// A limit's ban that was lifted to make room; `None`: there was room.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        in_place_of: Option<IpNet>,
    },
    /// A longer ban of the same origin stays, see [`BanRequest::keeps_longer`].
    Outlasted,
    /// Bans of the prefix itself were lifted.
    Lifted {
        /// Their origins.
        origins: Vec<Origin>,
        /// Other origins with a ban of the prefix, still in force.
        still_by: Vec<Origin>,
        /// A wider banned prefix, by which this one is still banned.
        still_in: Option<IpNet>,
    },
    /// The prefix had no such ban of its own.
    NotBanned {
        /// Other origins with a ban of the prefix, in force.
        still_by: Vec<Origin>,
        /// A wider banned prefix, by which this one is banned too.
        still_in: Option<IpNet>,
    },
    /// The ban was refused.
    Refused {
        /// The reason for the refusal, and how to resolve it.
        reason: String,
    },
}

/// Selects bans, a few thousand per request.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BansQuery {
    /// Only bans that contain this prefix or lie within it; `None`: all.
    pub prefix: Option<IpNet>,
    /// Only bans of this origin; `None`: of all.
    pub origin: Option<Origin>,
    /// Where to continue, from [`BansPage::next`]; `None`: at the start.
    pub position: Option<u32>,
}

/// Some bans in force: in no order, and not a consistent snapshot.
#[derive(Debug, Serialize, Deserialize)]
pub struct BansPage {
    /// The configured maximum of bans.
    pub capacity: u32,
    /// Bans in force.
    pub bans: Vec<BanStatus>,
    /// Where to continue; `None`: there are no more.
    pub next: Option<u32>,
}

/// A ban in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BanStatus {
    /// The banned address or range.
    pub prefix: IpNet,
    /// The banning origin.
    pub origin: Origin,
    /// The banning limit; `None`: no limit made the ban.
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
    /// Packets that bans of the prefix, by any origin, have dropped as long as the prefix is remembered.
    #[serde(default)]
    pub hits: u64,
    /// The summed frame lengths of these packets, in bytes.
    #[serde(default)]
    pub hit_bytes: u64,
    /// The list that excludes the prefix, or the address asked about, so that the ban has no effect there;
    /// `None`: no list does.
    pub excluded_by: Option<String>,
}

impl BanStatus {
    /// Returns the limit or the origin that banned, as a word for a sentence.
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
    /// Makes a reason from a text, cut to the maximum length.
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
