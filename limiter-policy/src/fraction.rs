//! Fractions of a whole, exact to the millionth.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A part of a whole in millionths, at most the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fraction(u32);

/// A text that is not a fraction.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("expected a percentage from '0%' to '100%', with at most four decimals, such as '0.5%'")]
pub struct InvalidFraction;

impl Fraction {
    /// The whole.
    pub const WHOLE: Self = Self(1_000_000);

    pub(crate) const fn from_millionths(millionths: u32) -> Self {
        Self(millionths)
    }

    /// Returns it in millionths.
    #[must_use]
    pub const fn millionths(self) -> u32 {
        self.0
    }
}

/// Formats the fraction as in a configuration file: `20%`, `0.5%`.
impl fmt::Display for Fraction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (percents, decimals) = (self.0 / 10_000, self.0 % 10_000);
        if decimals == 0 {
            return write!(formatter, "{percents}%");
        }
        let decimals = format!("{decimals:04}");
        write!(formatter, "{percents}.{}%", decimals.trim_end_matches('0'))
    }
}

impl FromStr for Fraction {
    type Err = InvalidFraction;

    fn from_str(text: &str) -> Result<Self, InvalidFraction> {
        let number = text.strip_suffix('%').ok_or(InvalidFraction)?.trim_end();
        let (percents, decimals) = number.split_once('.').unwrap_or((number, "0"));
        let are_digits =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !are_digits(percents) || !are_digits(decimals) || decimals.len() > 4 {
            return Err(InvalidFraction);
        }
        let millionths = format!("{percents}{decimals:0<4}");
        let fraction = millionths.parse().map(Self).map_err(|_| InvalidFraction)?;
        (fraction <= Self::WHOLE)
            .then_some(fraction)
            .ok_or(InvalidFraction)
    }
}

impl From<Fraction> for String {
    fn from(fraction: Fraction) -> Self {
        fraction.to_string()
    }
}

impl TryFrom<String> for Fraction {
    type Error = InvalidFraction;

    fn try_from(text: String) -> Result<Self, InvalidFraction> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_as_text() {
        for (text, millionths) in [
            ("20%", 200_000),
            ("0%", 0),
            ("100%", 1_000_000),
            ("0.1 %", 1_000),
            ("12.5%", 125_000),
            ("0.0001%", 1),
            ("007.50%", 75_000),
        ] {
            let fraction: Fraction = text.parse().unwrap();
            assert_eq!(fraction, Fraction(millionths), "{text}");
            assert_eq!(fraction.to_string().parse(), Ok(fraction), "{text}");
        }
        for text in [
            "",
            "%",
            "20",
            "0.2",
            "-1%",
            "100.0001%",
            "1.00001%",
            "1.%",
            ".5%",
            "1e1%",
            "99999999999%",
        ] {
            assert_eq!(text.parse::<Fraction>(), Err(InvalidFraction), "{text}");
        }
    }
}
