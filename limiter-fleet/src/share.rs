//! Shares of a budget.

use std::ops::Add;

use serde::{Deserialize, Serialize};

/// A share of a budget, in billionths, of both its burst and its rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "u64")]
pub struct Share(u64);

impl Share {
    /// No share.
    pub const NONE: Self = Self(0);

    /// The whole budget.
    pub const WHOLE: Self = Self(1_000_000_000);

    /// Makes a share of billionths, capped at the whole.
    #[must_use]
    pub const fn billionths(billionths: u64) -> Self {
        if billionths > Self::WHOLE.0 {
            Self::WHOLE
        } else {
            Self(billionths)
        }
    }

    /// The share in billionths.
    #[must_use]
    pub const fn in_billionths(self) -> u64 {
        self.0
    }

    /// Returns that part of a number, rounded down: so if shares add up to the whole, their parts add up to
    /// at most the number.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a part of the number is no larger than it"
    )]
    pub const fn of(self, number: u64) -> u64 {
        let part = number as u128 * self.0 as u128 / Self::WHOLE.0 as u128;
        part as u64
    }

    /// Returns the share minus another, at least nothing.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Whether it is less than another share by more than that part of it: smaller changes count as none.
    #[must_use]
    pub(crate) const fn is_less_by(self, part: u64, than: Self) -> bool {
        self.0 < than.0 - than.0 / part
    }

    /// Divides the share into equal parts, rounded down.
    #[must_use]
    pub const fn divided(self, among: u64) -> Self {
        match self.0.checked_div(among) {
            Some(each) => Self(each),
            None => Self::NONE,
        }
    }
}

impl From<u64> for Share {
    fn from(billionths: u64) -> Self {
        Self::billionths(billionths)
    }
}

impl Add for Share {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_no_more_than_the_number() {
        for among in [1, 3, 7, 10_000] {
            let each = Share::WHOLE.divided(among);
            for number in [0, 1, 10, 999_999, u64::MAX] {
                assert!(u128::from(each.of(number)) * u128::from(among) <= u128::from(number));
            }
        }
        assert_eq!(Share::WHOLE.of(u64::MAX), u64::MAX);
        assert_eq!(Share::WHOLE.divided(0), Share::NONE);
        assert_eq!(Share::billionths(u64::MAX), Share::WHOLE);
        assert_eq!(Share::NONE.without(Share::WHOLE), Share::NONE);
    }
}
