//! Automatic bans: a limit bans the sources that it drops, for a time that grows.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::text;

/// The rule by which a limit bans the sources that it drops. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutomaticBan {
    /// The number of dropped packets that bans a source; at least 1.
    pub after: u64,
    /// The time in which these drops must occur.
    pub within_ns: u64,
    /// The length of the first ban.
    pub for_ns: u64,
    /// The maximum length of a ban, after any number of earlier ones; at least `for_ns`.
    pub at_most_ns: u64,
    /// The factor from each ban to the next, while the previous one is remembered.
    pub escalate: Escalation,
    /// The number of addresses with drops or bans that bans their IPv6 /64; `None`: /64s are never banned.
    pub range_after: Option<u32>,
    /// The number of banned /64s that bans their /48; `None`: /48s are never banned. Needs `range_after`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site_after: Option<u32>,
    /// The sources that it bans; `None`: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<BanOnly>,
    /// Whether it bans or only reports.
    pub mode: BanMode,
}

impl AutomaticBan {
    /// The default of `range_after`.
    pub const RANGE_AFTER: u32 = 16;

    /// The default of `at_most_ns`: a day.
    pub const AT_MOST_NS: u64 = 24 * 3_600_000_000_000;

    /// Returns the length of a prefix's ban; `times` counts its bans, this one included.
    #[must_use]
    pub fn length_ns(&self, times: u16) -> u64 {
        let mut length_ns = self.for_ns;
        // Stop at the first repeated length, not after thousands of rounds.
        for _ in 1..times {
            let longer_ns = self.escalate.of(length_ns);
            if longer_ns == length_ns || longer_ns >= self.at_most_ns {
                length_ns = longer_ns;
                break;
            }
            length_ns = longer_ns;
        }
        length_ns.min(self.at_most_ns)
    }
}

/// Formats the ban as in a configuration file.
impl fmt::Display for AutomaticBan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{{after: {} drops, within: {}, for: {}, at-most: {}, escalate: {}",
            self.after,
            text::period(self.within_ns),
            text::period(self.for_ns),
            text::period(self.at_most_ns),
            self.escalate,
        )?;
        match self.range_after {
            None => write!(formatter, ", range-after: off")?,
            Some(Self::RANGE_AFTER) => {}
            Some(addresses) => write!(formatter, ", range-after: {addresses}")?,
        }
        if let Some(networks) = self.site_after {
            write!(formatter, ", site-after: {networks}")?;
        }
        if let Some(only) = self.only {
            write!(formatter, ", only: {}", only.name())?;
        }
        match self.mode {
            BanMode::Enforce => {}
            BanMode::Observe => write!(formatter, ", mode: {}", self.mode.name())?,
        }
        write!(formatter, "}}")
    }
}

/// The sources that a limit bans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BanOnly {
    /// Sources with a proven return path: proven sources, and sources that became proven during a shortage.
    Proven,
}

impl BanOnly {
    /// Every value.
    pub const ALL: [Self; 1] = [Self::Proven];

    /// Returns the name in configuration files and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Proven => "proven",
        }
    }
}

/// The effect on sources that meet the rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BanMode {
    /// They are banned.
    #[default]
    Enforce,
    /// They are only reported.
    Observe,
}

impl BanMode {
    /// Every mode.
    pub const ALL: [Self; 2] = [Self::Enforce, Self::Observe];

    /// Returns the mode's name in configuration files and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Observe => "observe",
        }
    }
}

/// The factor from each ban to the next, in thousandths: at least 1, at most 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Escalation(u32);

impl Escalation {
    /// Each ban lasts as long as the one before.
    pub const NONE: Self = Self(1_000);

    const MOST: u32 = 100_000;

    /// Returns the factor with these thousandths; `None`: it is below 1 or above 100.
    #[must_use]
    pub const fn from_thousandths(thousandths: u32) -> Option<Self> {
        if thousandths >= Self::NONE.0 && thousandths <= Self::MOST {
            Some(Self(thousandths))
        } else {
            None
        }
    }

    /// Multiplies a time in nanoseconds, rounding down.
    fn of(self, ns: u64) -> u64 {
        let longer = u128::from(ns) * u128::from(self.0) / u128::from(Self::NONE.0);
        u64::try_from(longer).unwrap_or(u64::MAX)
    }
}

/// Formats the factor as in a configuration file: `2`, `1.5`.
impl fmt::Display for Escalation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, thousandths) = (self.0 / 1_000, self.0 % 1_000);
        if thousandths == 0 {
            return write!(formatter, "{whole}");
        }
        let decimals = format!("{thousandths:03}");
        write!(formatter, "{whole}.{}", decimals.trim_end_matches('0'))
    }
}

/// Serializes the factor as a number.
impl Serialize for Escalation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(f64::from(self.0) / 1_000.0)
    }
}

impl<'d> Deserialize<'d> for Escalation {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
        let factor = f64::deserialize(deserializer)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the cast saturates, and the result is then refused"
        )]
        let thousandths = (factor * 1_000.0).round() as u32;
        Self::from_thousandths(thousandths).ok_or_else(|| {
            D::Error::custom(format_args!(
                "the factor must be from 1 to 100, found {factor}"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn ban(escalate: u32, for_ns: u64, at_most_ns: u64) -> AutomaticBan {
        AutomaticBan {
            after: 1_000,
            within_ns: 10 * SECOND,
            for_ns,
            at_most_ns,
            escalate: Escalation::from_thousandths(escalate).unwrap(),
            range_after: Some(AutomaticBan::RANGE_AFTER),
            site_after: None,
            only: None,
            mode: BanMode::Enforce,
        }
    }

    #[test]
    fn bans_grow_up_to_the_most() {
        let check = |escalate, times, seconds: u64| {
            let ban = ban(escalate, 600 * SECOND, 86_400 * SECOND);
            let length_ns = ban.length_ns(times);
            assert_eq!(length_ns, seconds * SECOND, "{escalate}, time {times}");
        };
        check(1_000, 1, 600);
        check(1_000, 2, 600);
        check(1_000, u16::MAX, 600);
        check(2_000, 1, 600);
        check(2_000, 2, 1_200);
        check(2_000, 3, 2_400);
        // 600 × 2^7 = 76 800.
        check(2_000, 8, 76_800);
        check(2_000, 9, 86_400);
        check(2_000, u16::MAX, 86_400);
        check(1_500, 2, 900);
        check(1_500, 3, 1_350);
        check(100_000, 2, 60_000);
        check(100_000, 3, 86_400);
        // Not a valid count, but harmless.
        check(2_000, 0, 600);
    }

    #[test]
    fn a_ban_is_never_longer_than_the_most() {
        let year = 8_760 * 3_600 * SECOND;
        assert_eq!(ban(100_000, year, year).length_ns(u16::MAX), year);
        assert_eq!(ban(2_000, 7, 7).length_ns(2), 7);
        // Growth by less than a nanosecond is no growth.
        assert_eq!(ban(1_001, 7, 100).length_ns(u16::MAX), 7);
    }

    #[test]
    fn factors_are_shown_and_stored_as_they_are_written() {
        let check = |thousandths, shown: &str, json: &str| {
            let factor = Escalation::from_thousandths(thousandths).unwrap();
            assert_eq!(factor.to_string(), shown);
            assert_eq!(serde_json::to_string(&factor).unwrap(), json);
            assert_eq!(serde_json::from_str::<Escalation>(json).unwrap(), factor);
        };
        check(1_000, "1", "1.0");
        check(1_500, "1.5", "1.5");
        check(1_005, "1.005", "1.005");
        check(100_000, "100", "100.0");
        for wrong in ["0.999", "100.001", "-2.0", "1e300"] {
            assert!(
                serde_json::from_str::<Escalation>(wrong).is_err(),
                "{wrong}"
            );
        }
        assert_eq!(Escalation::from_thousandths(999), None);
        assert_eq!(Escalation::from_thousandths(100_001), None);
    }

    #[test]
    fn shown_as_configured() {
        let check = |ban: AutomaticBan, shown: &str| assert_eq!(ban.to_string(), shown);
        let plain = ban(2_000, 600 * SECOND, 86_400 * SECOND);
        check(
            plain,
            "{after: 1000 drops, within: 10s, for: 10m, at-most: 24h, escalate: 2}",
        );
        check(
            AutomaticBan {
                range_after: Some(4),
                site_after: Some(8),
                only: Some(BanOnly::Proven),
                mode: BanMode::Observe,
                ..plain
            },
            "{after: 1000 drops, within: 10s, for: 10m, at-most: 24h, escalate: 2, \
             range-after: 4, site-after: 8, only: proven, mode: observe}",
        );
        check(
            AutomaticBan {
                range_after: None,
                ..plain
            },
            "{after: 1000 drops, within: 10s, for: 10m, at-most: 24h, escalate: 2, \
             range-after: off}",
        );
    }
}
