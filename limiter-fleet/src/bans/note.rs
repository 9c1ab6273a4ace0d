//! A node's word about a ban, and whether it is believed.

use std::fmt;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::{Name, name::is_word};

/// By how much a note may be from the future, in milliseconds: that far apart may clocks be.
pub const MOST_AHEAD_MS: u64 = 60_000;

/// The longest time until a ban with an end ends, in milliseconds: a hundred years.
pub const LONGEST_MS: u64 = 100 * 365 * 24 * 3_600_000;

/// The most bytes of a reason, as a node's own bans have.
const MOST_REASON: usize = 88;

/// The most characters of an origin's name.
const MOST_ORIGIN: usize = 64;

/// The most bytes of a limit's name that goes from node to node.
const MOST_LIMIT: usize = 128;

/// Tells one ban from all others: a prefix, and who bans it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BanId {
    /// The address or range.
    pub prefix: IpNet,
    /// The name of who bans: `automatic`, `operator` or another.
    pub origin: Box<str>,
}

/// When something was said, and by whom: the order of what is said.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Stamp {
    /// The time, in milliseconds since 1970.
    pub ms: u64,
    /// The node.
    pub node: Name,
}

/// A word about a ban.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Said {
    /// It is lifted.
    Lifted,
    /// It is made.
    Banned {
        /// When it ends, in milliseconds since 1970; `None`: not until it is lifted.
        until_ms: Option<u64>,
        /// Why.
        reason: Box<str>,
        /// The name of the limit that made it; `None`: no limit did.
        limit: Option<Box<str>>,
    },
}

/// A node's word about a ban.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BanNote {
    /// The ban.
    pub id: BanId,
    /// When it was said, and by whom.
    pub stamp: Stamp,
    /// The word.
    pub said: Said,
    /// When the last ends of all that was ever said of the ban, in milliseconds since 1970;
    /// [`u64::MAX`]: it was without an end once.
    pub ends_ms: u64,
}

/// A note that is not believed, though the fleet's key sealed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WrongNote {
    /// Its prefix is everybody, or written in a way that no prefix is.
    Prefix,
    /// Its origin is no name, or its limit's name is none or belongs to another origin.
    Origin,
    /// Its reason is too long, or has control characters.
    Reason,
    /// It ends before it begins, or in more than a hundred years.
    End,
    /// It is from the future.
    Ahead,
}

impl WrongNote {
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

impl fmt::Display for WrongNote {
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

impl Said {
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

impl BanNote {
    /// Checks a note that came from elsewhere, at a time in milliseconds since 1970.
    ///
    /// # Errors
    ///
    /// No node would say that.
    pub fn check(&self, now_ms: u64) -> Result<(), WrongNote> {
        if !is_bannable(self.id.prefix) {
            return Err(WrongNote::Prefix);
        }
        if !is_word(&self.id.origin, MOST_ORIGIN) {
            return Err(WrongNote::Origin);
        }
        if self.stamp.ms > now_ms.saturating_add(MOST_AHEAD_MS) {
            return Err(WrongNote::Ahead);
        }
        let latest_ms = self.stamp.ms.saturating_add(LONGEST_MS);
        if self.ends_ms != u64::MAX && self.ends_ms > latest_ms {
            return Err(WrongNote::End);
        }
        let Said::Banned {
            until_ms,
            reason,
            limit,
        } = &self.said
        else {
            return Ok(());
        };
        if until_ms.is_some_and(|until_ms| until_ms < self.stamp.ms || until_ms > latest_ms)
            || self.ends_ms < self.said.ends_ms()
        {
            return Err(WrongNote::End);
        }
        if !is_line(reason, MOST_REASON) {
            return Err(WrongNote::Reason);
        }
        if limit.is_some() != (&*self.id.origin == "automatic")
            || limit
                .as_ref()
                .is_some_and(|name| !is_line(name, MOST_LIMIT))
        {
            return Err(WrongNote::Origin);
        }
        Ok(())
    }
}

/// Returns whether a prefix can be banned: it is not everybody, has no host bits, and is not an IPv4
/// address in IPv6, which no packet has as its source.
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

    fn note(prefix: &str) -> BanNote {
        BanNote {
            id: BanId {
                prefix: prefix.parse().unwrap(),
                origin: "operator".into(),
            },
            stamp: Stamp {
                ms: NOW,
                node: "a".try_into().unwrap(),
            },
            said: Said::Banned {
                until_ms: Some(NOW + 1_000),
                reason: "why".into(),
                limit: None,
            },
            ends_ms: NOW + 1_000,
        }
    }

    #[track_caller]
    fn check(expected: Result<(), WrongNote>, change: impl FnOnce(&mut BanNote)) {
        let mut note = note("192.0.2.0/24");
        change(&mut note);
        assert_eq!(note.check(NOW), expected, "{note:?}");
    }

    fn banned(until_ms: Option<u64>, reason: &str, limit: Option<&str>) -> Said {
        Said::Banned {
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
                Err(WrongNote::Prefix)
            };
            assert_eq!(note(prefix).check(NOW), expected, "{prefix}");
        }
    }

    #[test]
    fn the_rest() {
        check(Ok(()), |_| {});
        check(Err(WrongNote::Origin), |note| note.id.origin = "Ops".into());
        check(Err(WrongNote::Origin), |note| {
            note.id.origin = "x".repeat(65).into();
        });
        check(Ok(()), |note| note.id.origin = "x".repeat(64).into());
        check(Err(WrongNote::Origin), |note| {
            note.id.origin = "automatic".into();
        });
        check(Err(WrongNote::Origin), |note| {
            note.said = banned(Some(NOW), "", Some("Limit"));
        });
        check(Ok(()), |note| {
            note.id.origin = "automatic".into();
            note.said = banned(Some(NOW), "", Some("Limit"));
        });
        check(Err(WrongNote::Reason), |note| {
            note.said = banned(Some(NOW), "a\u{1b}[2J", None);
        });
        check(Err(WrongNote::Reason), |note| {
            note.said = banned(Some(NOW), &"x".repeat(89), None);
        });
        check(Err(WrongNote::End), |note| {
            note.said = banned(Some(NOW - 1), "", None);
        });
        check(Err(WrongNote::End), |note| {
            note.said = banned(None, "", None);
        });
        check(Ok(()), |note| {
            note.said = banned(None, "", None);
            note.ends_ms = u64::MAX;
        });
        check(Err(WrongNote::End), |note| note.ends_ms = u64::MAX - 1);
        check(Err(WrongNote::Ahead), |note| {
            note.stamp.ms += MOST_AHEAD_MS + 1;
        });
    }
}
