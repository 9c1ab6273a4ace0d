//! Bans of the whole fleet, and the checks of updates from other nodes.

use std::fmt;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::{
    Kind, Name, Refusal,
    name::is_word,
    replicated::{AFTERWARDS_MS, MOST_AHEAD_MS, Stamp, Update, Value},
};

/// The longest time until a ban with an end ends, in milliseconds: a hundred years.
pub const LONGEST_MS: u64 = 100 * 365 * 24 * 3_600_000;

/// How long a node remembers at most that a ban was lifted or has ended, in milliseconds: 30 days.
const LONGEST_MEMORY_MS: u64 = 30 * 24 * 3_600_000;

/// The most bytes of a reason, as a node's own bans have.
const MOST_REASON: usize = 88;

/// The most characters of an origin's name.
const MOST_ORIGIN: usize = 64;

/// The most bytes of a limit's name that goes from node to node.
const MOST_LIMIT: usize = 128;

/// Its prefix covers all addresses, or is not in canonical form.
const PREFIX: Refusal = Refusal::new("prefix", "its prefix cannot be banned");

/// Its origin is not a valid name, or its limit's name is invalid or belongs to another origin.
const ORIGIN: Refusal = Refusal::new("origin", "its origin or its limit has no such name");

/// Its reason is too long, or has control characters.
const REASON: Refusal = Refusal::new("reason", "its reason is too long or no line of text");

/// It ends before it begins, or in more than a hundred years.
const END: Refusal = Refusal::new("end", "it ends at no such time");

const AHEAD: Refusal = Refusal::new("ahead", "it is from the future: the hosts' clocks disagree");

/// The identity of a ban: a prefix and an origin.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BanId {
    /// The address or range.
    pub prefix: IpNet,
    /// The origin: `automatic`, `operator` or another name.
    pub origin: Box<str>,
}

impl fmt::Display for BanId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.prefix, self.origin)
    }
}

/// The state of a ban.
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

/// A node's update of a ban.
pub type BanUpdate = Update<BanState>;

impl Value for BanState {
    type Key = BanId;

    type Context = ();

    const KIND: Kind = Kind::Bans;

    const MOST: usize = 500_000;

    const MOST_ALIKE: usize = usize::MAX;

    const IS_RELAYED: bool = true;

    fn ends_ms(&self) -> u64 {
        match self {
            Self::Lifted => 0,
            Self::Banned { until_ms, .. } => until_ms.unwrap_or(u64::MAX),
        }
    }

    fn forgotten_at_ms(&self, stamp: &Stamp, ends_ms: u64) -> u64 {
        let own_ms = self.ends_ms();
        if own_ms == u64::MAX {
            return own_ms;
        }
        let past_ms = ends_ms.min(stamp.ms.saturating_add(LONGEST_MEMORY_MS));
        let last_ms = past_ms.max(own_ms).max(stamp.ms);
        last_ms.saturating_add(AFTERWARDS_MS)
    }

    fn check(update: &BanUpdate, (): (), now_ms: u64) -> Result<(), Refusal> {
        if !is_bannable(update.key.prefix) {
            return Err(PREFIX);
        }
        if !is_word(&update.key.origin, MOST_ORIGIN) {
            return Err(ORIGIN);
        }
        if update.stamp.ms > now_ms.saturating_add(MOST_AHEAD_MS) {
            return Err(AHEAD);
        }
        let latest_ms = update.stamp.ms.saturating_add(LONGEST_MS);
        if update.ends_ms != u64::MAX && update.ends_ms > latest_ms {
            return Err(END);
        }
        let BanState::Banned {
            until_ms,
            reason,
            limit,
        } = &update.value
        else {
            return Ok(());
        };
        if until_ms.is_some_and(|until_ms| until_ms < update.stamp.ms || until_ms > latest_ms)
            || update.ends_ms < update.value.ends_ms()
        {
            return Err(END);
        }
        if !is_line(reason, MOST_REASON) {
            return Err(REASON);
        }
        let is_automatic = &*update.key.origin == "automatic";
        let mut names = limit.iter();
        if limit.is_some() != is_automatic || !names.all(|name| is_line(name, MOST_LIMIT)) {
            return Err(ORIGIN);
        }
        Ok(())
    }

    /// Counts the bans of other nodes by origin.
    fn label<'l>(id: &'l BanId, stamp: &'l Stamp, own: &Name) -> Option<&'l str> {
        (stamp.node != *own).then_some(&*id.origin)
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
            key: BanId {
                prefix: prefix.parse().unwrap(),
                origin: "operator".into(),
            },
            stamp: Stamp {
                ms: NOW,
                node: "a".try_into().unwrap(),
            },
            value: BanState::Banned {
                until_ms: Some(NOW + 1_000),
                reason: "why".into(),
                limit: None,
            },
            ends_ms: NOW + 1_000,
        }
    }

    #[track_caller]
    fn check(expected: Result<(), Refusal>, change: impl FnOnce(&mut BanUpdate)) {
        let mut update = update("192.0.2.0/24");
        change(&mut update);
        assert_eq!(BanState::check(&update, (), NOW), expected, "{update:?}");
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
            let expected = if is_right { Ok(()) } else { Err(PREFIX) };
            assert_eq!(
                BanState::check(&update(prefix), (), NOW),
                expected,
                "{prefix}"
            );
        }
    }

    #[test]
    fn the_rest() {
        check(Ok(()), |_| {});
        check(Err(ORIGIN), |update| {
            update.key.origin = "Ops".into();
        });
        check(Err(ORIGIN), |update| {
            update.key.origin = "x".repeat(65).into();
        });
        check(Ok(()), |update| update.key.origin = "x".repeat(64).into());
        check(Err(ORIGIN), |update| {
            update.key.origin = "automatic".into();
        });
        check(Err(ORIGIN), |update| {
            update.value = banned(Some(NOW), "", Some("Limit"));
        });
        check(Ok(()), |update| {
            update.key.origin = "automatic".into();
            update.value = banned(Some(NOW), "", Some("Limit"));
        });
        check(Err(REASON), |update| {
            update.value = banned(Some(NOW), "a\u{1b}[2J", None);
        });
        check(Err(REASON), |update| {
            update.value = banned(Some(NOW), &"x".repeat(89), None);
        });
        check(Err(END), |update| {
            update.value = banned(Some(NOW - 1), "", None);
        });
        check(Err(END), |update| {
            update.value = banned(None, "", None);
        });
        check(Ok(()), |update| {
            update.value = banned(None, "", None);
            update.ends_ms = u64::MAX;
        });
        check(Err(END), |update| {
            update.ends_ms = u64::MAX - 1;
        });
        check(Err(AHEAD), |update| {
            update.stamp.ms += MOST_AHEAD_MS + 1;
        });
    }
}
