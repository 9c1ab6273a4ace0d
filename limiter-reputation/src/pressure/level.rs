//! From the load of a limit to the lists to reject: Traffic Server's formula, in whole numbers.

use limiter_policy::policy::Percentage;

/// The used part of a limit, as a fraction of two numbers in the same unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The used part.
    pub active: u128,
    /// The whole; above 0.
    pub limit: u128,
}

impl Load {
    /// Returns the load in percent, for people.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "nobody reads more than a few digits"
    )]
    pub fn percent(self) -> f64 {
        100.0 * self.active as f64 / self.limit as f64
    }
}

/// Returns how many lists are rejected, from list 0 on, in a sieve with `list_count` lists besides list 0; `None`:
/// there is no pressure, and sources are not scored.
///
/// With P for the percentage and N for the lists this is
/// `trunc((100 × active / limit − P) / (100 − P) × (N + 1))`, at most N, and `None` if that is negative. `trunc`
/// rounds towards zero, so scoring begins before the percentage is reached: as far below it as the first rejection is
/// above it.
#[must_use]
pub fn pressure(load: Load, percentage: Percentage, list_count: u8) -> Option<u8> {
    let whole = u128::from(Percentage::WHOLE);
    let percentage = u128::from(percentage.hundredths());
    let steps = u128::from(list_count) + 1;
    // Both fractions have the denominator limit × (100 − P), in hundredths of a percent. Saturation is harmless, as
    // it happens far beyond the last step.
    let used = load.active.saturating_mul(whole);
    let from = load.limit.saturating_mul(percentage);
    let one = load.limit.saturating_mul(whole - percentage).max(1);
    match used.checked_sub(from) {
        Some(above) => {
            let lists = above.saturating_mul(steps) / one;
            Some(u8::try_from(lists).map_or(list_count, |lists| lists.min(list_count)))
        }
        None => ((from - used).saturating_mul(steps) < one).then_some(0),
    }
}

/// Returns the fraction of the limit from which the entries of a list are rejected, in percent; `None`: never,
/// because it is the last list.
#[must_use]
pub fn rejected_from(list: u8, percentage: Percentage, list_count: u8) -> Option<f64> {
    let percentage = percentage.percents();
    let step = (100.0 - percentage) / (f64::from(list_count) + 1.0);
    (list < list_count).then(|| percentage + step * (f64::from(list) + 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(active: u128, limit: u128, percentage: &str, list_count: u8) -> Option<u8> {
        pressure(
            Load { active, limit },
            percentage.parse().unwrap(),
            list_count,
        )
    }

    /// A limit of 1100 with ten lists from 90 % on (990) has eleven steps of 10 each.
    #[test]
    fn ten_lists_from_ninety_percent() {
        let check = |active, expected| {
            assert_eq!(at(active, 1100, "90", 10), expected, "{active}");
        };
        check(0, None);
        check(979, None);
        // −1 is the first that is not truncated to 0.
        check(980, None);
        check(981, Some(0));
        check(989, Some(0));
        check(990, Some(0));
        for step in 1..=10_u8 {
            let first = 990 + 10 * u128::from(step);
            check(first - 1, Some(step - 1));
            check(first, Some(step));
        }
        // Step 11, at the limit itself, would be 11 lists.
        check(1100, Some(10));
        check(1_000_000, Some(10));
        check(u128::MAX, Some(10));
    }

    /// A limit of 1000 with one list from 50 % on: two steps of 250.
    #[test]
    fn one_list_from_half() {
        let check = |active, expected| {
            assert_eq!(at(active, 1000, "0.5", 1), expected, "{active}");
        };
        check(250, None);
        check(251, Some(0));
        check(500, Some(0));
        check(749, Some(0));
        check(750, Some(1));
        check(1000, Some(1));
        check(5000, Some(1));
    }

    /// A limit of 1000 with four lists from 87.5 % on (875): five steps of 25.
    #[test]
    fn four_lists_from_an_odd_percentage() {
        for (active, expected) in [
            (850, None),
            (851, Some(0)),
            (899, Some(0)),
            (900, Some(1)),
            (924, Some(1)),
            (925, Some(2)),
            (950, Some(3)),
            (974, Some(3)),
            (975, Some(4)),
            (1000, Some(4)),
        ] {
            assert_eq!(at(active, 1000, "87.5", 4), expected, "{active}");
        }
    }

    /// With 0 % there is always pressure; 19 lists divide a limit of 20 into steps of 1.
    #[test]
    fn from_nothing_on() {
        for active in 0..20 {
            let expected = u8::try_from(active).unwrap();
            assert_eq!(at(active, 20, "0", 19), Some(expected));
        }
        assert_eq!(at(20, 20, "0", 19), Some(19));
    }

    /// 99.99 % of a million is 999 900; 99 lists divide the 100 above it into steps of 1.
    #[test]
    fn ninety_nine_lists_within_a_hundredth() {
        let check = |active, expected| {
            assert_eq!(at(active, 1_000_000, "99.99", 99), expected, "{active}");
        };
        check(999_899, None);
        check(999_900, Some(0));
        check(999_901, Some(1));
        check(999_998, Some(98));
        check(999_999, Some(99));
        check(1_000_000, Some(99));
    }

    #[test]
    fn lists_are_rejected_from_the_share_where_the_pressure_exceeds_them() {
        let ninety = "90".parse().unwrap();
        let shown = |list| rejected_from(list, ninety, 10).map(|share| format!("{share:.2}"));
        assert_eq!(shown(0).as_deref(), Some("90.91"));
        assert_eq!(shown(7).as_deref(), Some("97.27"));
        assert_eq!(shown(9).as_deref(), Some("99.09"));
        assert_eq!(shown(10), None);
        for list in 0..10_u8 {
            // Pressure n + 1 rejects list n; with 1100 it begins at 990 + 10 (n + 1).
            let share = rejected_from(list, ninety, 10).unwrap();
            let first = 990 + 10 * (u32::from(list) + 1);
            assert!((share - f64::from(first) / 11.0).abs() < 1e-9);
        }
    }
}
