//! Percentages, exact to the hundredth.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A percentage from 0 to below 100, in hundredths: integers, so that results match calculation by
/// hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Percentage(u16);

/// A text that is not a percentage.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum InvalidPercentage {
    /// It is not a decimal number.
    #[error("must be a number such as 90 or 0.9")]
    Malformed,
    /// It is negative, or the whole or more.
    #[error("must be at least 0 and below 100, or below 1 as a fraction")]
    OutOfRange,
    /// It has digits below a hundredth of a percent.
    #[error("must have at most two decimals as a percentage, four as a fraction")]
    TooFine,
}

impl Percentage {
    /// 100 %, in hundredths.
    pub const WHOLE: u16 = 10_000;

    /// Returns it in hundredths, below [`Self::WHOLE`].
    #[must_use]
    pub const fn hundredths(self) -> u16 {
        self.0
    }

    /// Returns it in percent, for people.
    #[must_use]
    pub fn percents(self) -> f64 {
        f64::from(self.0) / 100.0
    }
}

/// 90 %, as in Traffic Server.
impl Default for Percentage {
    fn default() -> Self {
        Self(9000)
    }
}

/// Parses a decimal number: up to 1 it is a fraction, above a percentage.
impl FromStr for Percentage {
    type Err = InvalidPercentage;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        /// The decimals of a fraction that has hundredths of a percent.
        const DIGITS: usize = 4;
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (whole, decimals) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !all_digits(whole) || !all_digits(decimals) || whole.len() + decimals.len() == 0 {
            return Err(InvalidPercentage::Malformed);
        }
        let decimals = decimals.trim_end_matches('0');
        let whole = match whole.trim_start_matches('0') {
            "" => "0",
            digits => digits,
        };
        let is_fraction = whole == "0" || (whole == "1" && decimals.is_empty());
        let digits = if is_fraction { DIGITS } else { DIGITS - 2 };
        if unsigned != text || whole.len() > 2 || (is_fraction && whole == "1") {
            return Err(InvalidPercentage::OutOfRange);
        }
        if decimals.len() > digits {
            return Err(InvalidPercentage::TooFine);
        }
        format!("{whole}{decimals:0<digits$}")
            .parse()
            .map(Self)
            .map_err(|_| InvalidPercentage::Malformed)
    }
}

/// Formats the number of percent: `90`, `87.5`.
impl fmt::Display for Percentage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (percents, hundredths) = (self.0 / 100, self.0 % 100);
        match (percents, hundredths) {
            (_, 0) => write!(formatter, "{percents}"),
            // This would be read as a fraction, so write it as one.
            (0, _) => write!(formatter, "0.00{hundredths:02}"),
            _ => {
                let decimals = format!("{hundredths:02}");
                write!(formatter, "{percents}.{}", decimals.trim_end_matches('0'))
            }
        }
    }
}

impl From<Percentage> for String {
    fn from(percentage: Percentage) -> Self {
        percentage.to_string()
    }
}

impl TryFrom<String> for Percentage {
    type Error = InvalidPercentage;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percents_and_fractions() {
        for (text, hundredths) in [
            ("90", 9000),
            ("0.9", 9000),
            ("90.0", 9000),
            ("0.90", 9000),
            (".9", 9000),
            ("87.5", 8750),
            ("99.99", 9999),
            ("0.9999", 9999),
            ("0.0025", 25),
            ("0", 0),
            ("0.0", 0),
            ("2", 200),
            ("1.5", 150),
        ] {
            let read: Percentage = text.parse().unwrap();
            assert_eq!(read.hundredths(), hundredths, "{text}");
            assert_eq!(read.to_string().parse(), Ok(read), "{text}");
        }
        assert_eq!(Percentage(8750).to_string(), "87.5");
        assert_eq!(Percentage(9000).to_string(), "90");
    }

    #[test]
    fn invalid_percentages() {
        for (text, error) in [
            ("", InvalidPercentage::Malformed),
            (".", InvalidPercentage::Malformed),
            ("90%", InvalidPercentage::Malformed),
            ("1e1", InvalidPercentage::Malformed),
            ("100", InvalidPercentage::OutOfRange),
            ("100.5", InvalidPercentage::OutOfRange),
            ("1", InvalidPercentage::OutOfRange),
            ("1.0", InvalidPercentage::OutOfRange),
            ("-5", InvalidPercentage::OutOfRange),
            ("90.123", InvalidPercentage::TooFine),
            ("0.90001", InvalidPercentage::TooFine),
        ] {
            assert_eq!(text.parse::<Percentage>(), Err(error), "{text}");
        }
    }
}
