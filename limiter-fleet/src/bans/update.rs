//! An update about a ban, and the checks of updates from other nodes.

use std::fmt;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::{Name, name::is_word};

/// How far in the future an update may be, in milliseconds: the tolerated difference of clocks.
pub const MOST_AHEAD_MS: u64 = 60_000;

/// The longest time until a ban with an end ends, in milliseconds: a hundred years.
pub const LONGEST_MS: u64 = 100 * 365 * 24 * 3_600_000;

/// The most bytes of a reason, as a node's own bans have.
const MOST_REASON: usize = 88;

/// The most characters of an origin's name.
const MOST_ORIGIN: usize = 64;

/// The most bytes of a limit's name that goes from node to node.
const MOST_LIMIT: usize = 128;

/// The identity of a ban: a prefix and an origin.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BanId {
    /// The address or range.
    pub prefix: IpNet,
    /// The origin: `automatic`, `operator` or another name.
    pub origin: Box<str>,
}

/// The time and the node of an update: updates are ordered by it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Stamp {
    /// The time, in milliseconds since 1970.
    pub ms: u64,
    /// The node.
    pub node: Name,
}

/// A change of a ban.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum BanState {
    /// The ban is lifted.
    Lifted,
    /// The ban is made.
    Banned {
        /// When it ends, in milliseconds since 1970; `None`: not until it is lifted.
        until_ms: Option<u64>,
        /// Why.
        reason: Box<str>,
        /// The name of the limit that made it; `None`: no limit did.
        limit: Option<Box<str>>,
    },
}

/// A node's update about a ban.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BanUpdate {
    /// The ban.
    pub id: BanId,
    /// The time and the node of the update.
    pub stamp: Stamp,
    /// The change.
    pub state: BanState,
    /// The latest end among all updates about the ban, in milliseconds since 1970; [`u64::MAX`]: one of them
    /// had no end.
    pub ends_ms: u64,
}

/// Why an authenticated update is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WrongUpdate {
    /// Its prefix covers all addresses, or is not in canonical form.
    Prefix,
    /// Its origin is not a valid name, or its limit's name is invalid or belongs to another origin.
    Origin,
    /// Its reason is too long, or has control characters.
    Reason,
    /// It ends before it begins, or in more than a hundred years.
    End,
    /// It is from the future.
    Ahead,
}

impl WrongUpdate {
    /// Returns its name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prefix => "prefix",
            Self::Origin => "origin",
            Self::Reason => "reason",
            Self::End => "end",
            Self::Ahead => "ahead",
        }
    }
}

impl fmt::Display for WrongUpdate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Prefix => "its prefix cannot be banned",
            Self::Origin => "its origin or its limit has no such name",
            Self::Reason => "its reason is too long or no line of text",
            Self::End => "it ends at no such time",
            Self::Ahead => "it is from the future: the hosts' clocks disagree",
        })
    }
}

impl BanState {
    /// Returns when a ban ends, in milliseconds since 1970; [`u64::MAX`]: not by itself; 0: it is
    /// lifted.
    #[must_use]
    pub const fn ends_ms(&self) -> u64 {
        match self {
            Self::Lifted => 0,
            Self::Banned { until_ms: None, .. } => u64::MAX,
            Self::Banned {
                until_ms: Some(until_ms),
                ..
            } => *until_ms,
        }
    }
}

impl BanUpdate {
    /// Checks an update from another node, at a time in milliseconds since 1970.
    ///
    /// # Errors
    ///
    /// No honest node would send it.
    pub fn check(&self, now_ms: u64) -> Result<(), WrongUpdate> {
        if !is_bannable(self.id.prefix) {
            return Err(WrongUpdate::Prefix);
        }
        if !is_word(&self.id.origin, MOST_ORIGIN) {
            return Err(WrongUpdate::Origin);
        }
        if self.stamp.ms > now_ms.saturating_add(MOST_AHEAD_MS) {
            return Err(WrongUpdate::Ahead);
        }
        let latest_ms = self.stamp.ms.saturating_add(LONGEST_MS);
        if self.ends_ms != u64::MAX && self.ends_ms > latest_ms {
            return Err(WrongUpdate::End);
        }
        let BanState::Banned {
            until_ms,
            reason,
            limit,
        } = &self.state
        else {
            return Ok(());
        };
        if until_ms.is_some_and(|until_ms| until_ms < self.stamp.ms || until_ms > latest_ms)
            || self.ends_ms < self.state.ends_ms()
        {
            return Err(WrongUpdate::End);
        }
        if !is_line(reason, MOST_REASON) {
            return Err(WrongUpdate::Reason);
        }
        if limit.is_some() != (&*self.id.origin == "automatic")
            || limit
                .as_ref()
                .is_some_and(|name| !is_line(name, MOST_LIMIT))
        {
            return Err(WrongUpdate::Origin);
        }
        Ok(())
    }
}

/// Returns whether a prefix can be banned: it does not cover all addresses, has no host bits, and is not an
/// IPv4 address mapped to IPv6, which no packet has as its source.
fn is_bannable(prefix: IpNet) -> bool {
    let is_mapped = match prefix {
        IpNet::V4(_) => false,
        IpNet::V6(prefix) => prefix.addr().to_ipv4_mapped().is_some(),
    };
    prefix.prefix_len() > 0 && prefix.trunc() == prefix && !is_mapped
}

fn is_line(text: &str, most: usize) -> bool {
    text.len() <= most && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_700_000_000_000;

    fn update(prefix: &str) -> BanUpdate {
        BanUpdate {
            id: BanId {
                prefix: prefix.parse().unwrap(),
                origin: "operator".into(),
            },
            stamp: Stamp {
                ms: NOW,
                node: "a".try_into().unwrap(),
            },
            state: BanState::Banned {
                until_ms: Some(NOW + 1_000),
                reason: "why".into(),
                limit: None,
            },
            ends_ms: NOW + 1_000,
        }
    }

    #[track_caller]
    fn check(expected: Result<(), WrongUpdate>, change: impl FnOnce(&mut BanUpdate)) {
        let mut update = update("192.0.2.0/24");
        change(&mut update);
        assert_eq!(update.check(NOW), expected, "{update:?}");
    }

    fn banned(until_ms: Option<u64>, reason: &str, limit: Option<&str>) -> BanState {
        BanState::Banned {
            until_ms,
            reason: reason.into(),
            limit: limit.map(Into::into),
        }
    }

    #[test]
    fn prefixes() {
        for (prefix, is_right) in [
            ("0.0.0.0/1", true),
            ("2001:db8::/128", true),
            ("0.0.0.0/0", false),
            ("::/0", false),
            ("192.0.2.1/24", false),
            ("::ffff:192.0.2.1/128", false),
        ] {
            let expected = if is_right {
                Ok(())
            } else {
                Err(WrongUpdate::Prefix)
            };
            assert_eq!(update(prefix).check(NOW), expected, "{prefix}");
        }
    }

    #[test]
    fn the_rest() {
        check(Ok(()), |_| {});
        check(Err(WrongUpdate::Origin), |update| {
            update.id.origin = "Ops".into();
        });
        check(Err(WrongUpdate::Origin), |update| {
            update.id.origin = "x".repeat(65).into();
        });
        check(Ok(()), |update| update.id.origin = "x".repeat(64).into());
        check(Err(WrongUpdate::Origin), |update| {
            update.id.origin = "automatic".into();
        });
        check(Err(WrongUpdate::Origin), |update| {
            update.state = banned(Some(NOW), "", Some("Limit"));
        });
        check(Ok(()), |update| {
            update.id.origin = "automatic".into();
            update.state = banned(Some(NOW), "", Some("Limit"));
        });
        check(Err(WrongUpdate::Reason), |update| {
            update.state = banned(Some(NOW), "a\u{1b}[2J", None);
        });
        check(Err(WrongUpdate::Reason), |update| {
            update.state = banned(Some(NOW), &"x".repeat(89), None);
        });
        check(Err(WrongUpdate::End), |update| {
            update.state = banned(Some(NOW - 1), "", None);
        });
        check(Err(WrongUpdate::End), |update| {
            update.state = banned(None, "", None);
        });
        check(Ok(()), |update| {
            update.state = banned(None, "", None);
            update.ends_ms = u64::MAX;
        });
        check(Err(WrongUpdate::End), |update| {
            update.ends_ms = u64::MAX - 1;
        });
        check(Err(WrongUpdate::Ahead), |update| {
            update.stamp.ms += MOST_AHEAD_MS + 1;
        });
    }
}
