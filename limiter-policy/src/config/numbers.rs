//! Whole numbers: their bounds, and a letter for thousands, millions or billions: `10k`, `5M`, `1G`.

use std::ops::RangeInclusive;

/// Boulder's numbers are signed 64-bit integers.
pub(super) const POSITIVE: RangeInclusive<u64> = 1..=i64::MAX.unsigned_abs();

/// Returns the error for a number that is not a whole number of 64 bits.
pub(super) fn wrong_number(written: &str, range: &RangeInclusive<u64>) -> String {
    let digits = written.bytes().all(|byte| byte.is_ascii_digit());
    if written.starts_with('-') {
        outside(range, true)
    } else if digits && written.starts_with('0') {
        // YAML 1.1 reads such numbers as octal, YAML 1.2 as decimal.
        "must be written without leading zeros".to_owned()
    } else if digits {
        outside(range, false)
    } else {
        "must be a whole number, such as 250 or 10k".to_owned()
    }
}

/// Returns the error for a number below or above the range.
pub(super) fn outside(range: &RangeInclusive<u64>, below: bool) -> String {
    let (least, most) = (range.start(), range.end());
    if *range != POSITIVE {
        format!("must be from {least} to {most}")
    } else if below {
        "must be > 0".to_owned()
    } else {
        format!("must be at most {most}")
    }
}

/// The letters and their factors.
const MULTIPLES: [(char, u64); 4] = [
    ('k', 1_000),
    ('K', 1_000),
    ('M', 1_000_000),
    ('G', 1_000_000_000),
];

/// Returns a letter's factor; `None`: an unknown letter.
pub(super) fn factor(letter: char) -> Option<u64> {
    let (_, times) = MULTIPLES.iter().find(|(known, _)| *known == letter)?;
    Some(*times)
}

/// Parses digits followed by one of these letters, saturating at `u64::MAX`. `None`: any other text.
pub(super) fn parse_multiple(text: &str) -> Option<u64> {
    let letter = text.chars().next_back()?;
    let times = factor(letter)?;
    let digits = text.strip_suffix(letter)?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Only digits: an error means too many.
    let number = digits.parse().unwrap_or(u64::MAX);
    Some(number.saturating_mul(times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_multiply() {
        for (text, number) in [
            ("10k", Some(10_000)),
            ("10K", Some(10_000)),
            ("0M", Some(0)),
            ("5M", Some(5_000_000)),
            ("2G", Some(2_000_000_000)),
            ("99999999999999999999k", Some(u64::MAX)),
            ("18446744073709551615G", Some(u64::MAX)),
            ("10", None),
            ("k", None),
            ("", None),
            ("-1k", None),
            ("1.5M", None),
            ("10kk", None),
            ("10m", None),
            ("10 k", None),
        ] {
            assert_eq!(parse_multiple(text), number, "{text}");
        }
    }
}
