//! The origins of bans: limits, operators and other programs.

use std::{borrow::Cow, fmt, str::FromStr};

use limiter_common::ban::{Ban, BanText};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The most characters of a name. A ban stores the name beside the reason, in a fixed amount of memory.
const MOST: usize = 64;

/// The origin of a ban: a limit (`automatic`), the `operator`, or the name of a program, a fail2ban jail or a
/// person.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Origin(Cow<'static, str>);

/// A name was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidOrigin {
    /// It is empty or too long.
    #[error("an origin has 1 to {MOST} characters, and this one has {0}")]
    Length(usize),
    /// It has characters that would garble a table or imitate another name.
    #[error("an origin has only a-z, 0-9, '-', '_' and '.', and begins with a letter or a digit")]
    Characters,
}

impl Origin {
    /// Limits, all together.
    pub const AUTOMATIC: Self = Self(Cow::Borrowed("automatic"));

    /// A caller without a name.
    pub const OPERATOR: Self = Self(Cow::Borrowed("operator"));

    /// CrowdSec. Its decisions arrive as JSON.
    pub const CROWDSEC: Self = Self(Cow::Borrowed("crowdsec"));

    /// Returns the origin of a ban.
    #[must_use]
    pub fn of(ban: &Ban) -> Self {
        if ban.is_automatic() {
            return Self::AUTOMATIC;
        }
        match ban.text.origin() {
            [] => Self::OPERATOR,
            name => Self(String::from_utf8_lossy(name).into_owned().into()),
        }
    }

    /// Returns whether this origin made a ban.
    #[must_use]
    pub fn has_made(&self, ban: &Ban) -> bool {
        if ban.is_automatic() {
            return *self == Self::AUTOMATIC;
        }
        *self != Self::AUTOMATIC && self.in_ban().as_bytes() == ban.text.origin()
    }

    /// Returns the text for a ban of this origin: the name, and as much of the reason as fits.
    #[must_use]
    pub fn text(&self, reason: &str) -> BanText {
        BanText::new(reason, self.in_ban())
    }

    /// Formats a list of names.
    #[must_use]
    pub fn list(origins: &[Self]) -> String {
        let names: Vec<_> = origins.iter().map(Self::as_str).collect();
        names.join(", ")
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name as stored in bans: empty for operators and limits, as in bans from before origins
    /// existed.
    fn in_ban(&self) -> &str {
        if *self == Self::OPERATOR || *self == Self::AUTOMATIC {
            ""
        } else {
            &self.0
        }
    }
}

impl Default for Origin {
    fn default() -> Self {
        Self::OPERATOR
    }
}

impl TryFrom<String> for Origin {
    type Error = InvalidOrigin;

    /// Lowers capitals: some jails of fail2ban have them, and two names that differ only in case would look
    /// alike.
    fn try_from(mut name: String) -> Result<Self, InvalidOrigin> {
        name.make_ascii_lowercase();
        let length = name.chars().count();
        if !(1..=MOST).contains(&length) {
            return Err(InvalidOrigin::Length(length));
        }
        let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let mut bytes = name.bytes();
        if !bytes.next().is_some_and(is_word)
            || !bytes.all(|byte| is_word(byte) || b"-_.".contains(&byte))
        {
            return Err(InvalidOrigin::Characters);
        }
        Ok(Self(name.into()))
    }
}

impl FromStr for Origin {
    type Err = InvalidOrigin;

    fn from_str(name: &str) -> Result<Self, InvalidOrigin> {
        name.to_owned().try_into()
    }
}

impl From<Origin> for String {
    fn from(origin: Origin) -> Self {
        origin.0.into_owned()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_have_at_most_64_characters() {
        for name in [
            "operator",
            "automatic",
            "sshd",
            "9",
            "a-b_c.d",
            &"x".repeat(64),
        ] {
            assert_eq!(name.parse::<Origin>().unwrap().as_str(), name);
        }
        let capitals = "WordPress".parse::<Origin>().unwrap();
        assert_eq!(capitals.as_str(), "wordpress");
        for (name, expected) in [
            ("", InvalidOrigin::Length(0)),
            (&"x".repeat(65), InvalidOrigin::Length(65)),
            ("-x", InvalidOrigin::Characters),
            ("two words", InvalidOrigin::Characters),
            ("é", InvalidOrigin::Characters),
            ("a\u{1b}", InvalidOrigin::Characters),
        ] {
            assert_eq!(name.parse::<Origin>(), Err(expected), "{name}");
        }
    }

    #[test]
    fn a_ban_says_who_made_it() {
        let ban = |limit: u16, origin: &Origin| Ban {
            until_ns: 1,
            since_ns: 0,
            times: 1,
            limit,
            text: origin.text("why"),
        };
        let named = |name: &str| name.parse::<Origin>().unwrap();
        let all = [
            (Origin::OPERATOR, Ban::BY_HAND),
            (Origin::CROWDSEC, Ban::BY_HAND),
            (named("night-shift"), Ban::BY_HAND),
            (named(&"x".repeat(MOST)), Ban::BY_HAND),
            (Origin::AUTOMATIC, 7),
        ];
        for (origin, limit) in &all {
            let made = ban(*limit, origin);
            assert_eq!(Origin::of(&made), *origin);
            assert_eq!(made.text.reason(), b"why");
            for (other, of_other) in &all {
                assert_eq!(other.has_made(&made), other == origin);
                let theirs = ban(*of_other, other);
                assert_eq!(made.is_of_origin_of(&theirs), other == origin);
            }
        }
        // Another limit is the same origin.
        assert!(ban(7, &Origin::AUTOMATIC).is_of_origin_of(&ban(8, &Origin::AUTOMATIC)));
    }
}
