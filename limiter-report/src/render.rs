//! Formats numbers and tables as text.

mod tables;

use std::time::Duration;

pub use limiter_policy::text::count;

pub use crate::render::tables::{GAP, table, table_without, terminal_width};

/// Formats a count of things: `1 override`, `2 048 overrides`, `2 addresses`.
#[must_use]
pub fn counted(number: usize, thing: &str) -> String {
    let plural = match number {
        1 => "",
        _ if thing.ends_with(['s', 'x']) => "es",
        _ => "s",
    };
    format!("{} {thing}{plural}", count(number as u64))
}

/// Formats the number of packets that bans dropped: `1 hit`, `2 048 hits`.
#[must_use]
pub fn hits(number: u64) -> String {
    counted(usize::try_from(number).unwrap_or(usize::MAX), "hit")
}

/// Formats a count that may be a lower bound: `≥ 1 048 576`.
#[must_use]
pub fn at_least(number: u64, is_lower_bound: bool) -> String {
    let sign = if is_lower_bound { "≥ " } else { "" };
    format!("{sign}{}", count(number))
}

/// Formats a number like [`count`], with a decimal if it is small and not whole.
#[must_use]
pub fn number(number: f64) -> String {
    if (number - number.round()).abs() < 0.05 || number >= 100.0 {
        // Far below 2^64, and never negative.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rate"
        )]
        return count(number.round() as u64);
    }
    format!("{number:.1}")
}

/// Formats a percentage with one decimal.
#[must_use]
pub fn percent(percent: f64) -> String {
    format!("{percent:.1} %")
}

/// Converts a duration for the control protocol and [`duration`].
#[must_use]
pub fn nanoseconds(duration: Duration) -> u64 {
    // It saturates after more than 500 years.
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Formats an age: `3.2 ms ago`.
#[must_use]
pub fn ago(ns: u64) -> String {
    format!("{} ago", duration(ns))
}

/// Formats a duration in its largest fitting unit, with three significant digits: `3.2 ms`, `30
/// days`.
#[must_use]
pub fn duration(ns: u64) -> String {
    const UNITS: [(u64, &str); 6] = [
        (86_400_000_000_000, "days"),
        (3_600_000_000_000, "h"),
        (60_000_000_000, "min"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "µs"),
    ];
    let Some((length, unit)) = UNITS.iter().find(|(length, _)| ns >= *length) else {
        return format!("{ns} ns");
    };
    let (whole, rest) = (ns / length, ns % length);
    let decimals = match whole {
        0..10 => 2,
        10..100 => 1,
        _ => 0,
    };
    // No overflow: the rest times 100 stays far below 2^64.
    let fraction = match decimals {
        2 => format!(".{:02}", rest * 100 / length),
        1 => format!(".{}", rest * 10 / length),
        _ => String::new(),
    };
    let number = format!("{whole}{fraction}");
    let number = if fraction.is_empty() {
        number.as_str()
    } else {
        number.trim_end_matches('0').trim_end_matches('.')
    };
    match (number, *unit) {
        ("1", "days") => "1 day".to_owned(),
        _ => format!("{number} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_in_their_unit() {
        let check = |ns, text: &str| assert_eq!(duration(ns), text);
        check(0, "0 ns");
        check(999, "999 ns");
        check(50_000_000, "50 ms");
        check(3_217_000, "3.21 ms");
        check(999_999_999, "999 ms");
        check(1_000_000_000, "1 s");
        check(61_500_000_000, "1.02 min");
        check(200 * 60_000_000_000, "3.33 h");
        check(86_400_000_000_000, "1 day");
        check(86_900_000_000_000, "1 day");
        check(36 * 3_600_000_000_000, "1.5 days");
        check(30 * 86_400_000_000_000, "30 days");
    }

    #[test]
    fn numbers_and_percentages() {
        for (value, text) in [
            (0.0, "0"),
            (0.25, "0.2"),
            (12.5, "12.5"),
            (1000.0, "1 000"),
            (1234.5, "1 235"),
        ] {
            assert_eq!(number(value), text);
        }
        assert_eq!(percent(97.272_727), "97.3 %");
        assert_eq!(counted(1, "address"), "1 address");
        assert_eq!(counted(2, "address"), "2 addresses");
        assert_eq!(counted(2, "prefix"), "2 prefixes");
        assert_eq!(counted(2, "override"), "2 overrides");
    }

    #[test]
    fn counts_of_which_more_may_have_been() {
        assert_eq!(at_least(1_000, false), "1 000");
        assert_eq!(at_least(1_000, true), "≥ 1 000");
    }
}
