//! Durations in Go's notation, as in Boulder's files, and in days and weeks: `1s`, `1h30m`, `1.5h`,
//! `250µs`, `30d`, `2w`.

/// The units in nanoseconds: Go's, where µ is U+00B5 or U+03BC, then days of 24 hours and weeks,
/// which Go does not have.
const UNITS: [(&str, u64); 10] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
    ("w", 604_800_000_000_000),
];

/// Go's durations are signed 64-bit nanoseconds.
const MAX_NS: u128 = i64::MAX as u128;

/// The reason why a text is not a duration for a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDuration {
    /// It is not a duration.
    #[error("expected a duration, such as '1s', '1h30m' or '250ms'")]
    Malformed,
    /// It is a number without a unit.
    #[error("its unit is missing: ns, us, ms, s, m, h, d or w, such as '{0}s'")]
    MissingUnit(String),
    /// It has an unknown unit.
    #[error("unknown unit '{0}', must be one of ns, us, ms, s, m, h, d, w")]
    UnknownUnit(String),
    /// It is zero, or negative.
    #[error("must be > 0")]
    NotPositive,
    /// It is longer than Go can count.
    #[error("must be at most 2562047h47m16.854775807s")]
    TooLong,
}

/// Parses a duration into nanoseconds, at least 1, like Go's `time.ParseDuration` except that it
/// must be positive and may have days and weeks. Cuts off digits below a nanosecond.
pub fn parse(text: &str) -> Result<u64, InvalidDuration> {
    let (negative, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if unsigned == "0" {
        return Err(InvalidDuration::NotPositive);
    }
    if unsigned.is_empty() {
        return Err(InvalidDuration::Malformed);
    }
    let mut total: u128 = 0;
    let mut too_long = false;
    let mut rest = unsigned;
    // Parse to the end even if it is too long: a malformed text is reported as such.
    while !rest.is_empty() {
        let (ns, after) = term(rest)?;
        match ns {
            Some(ns) => total = total.saturating_add(ns),
            None => too_long = true,
        }
        rest = after;
    }
    if negative || (total == 0 && !too_long) {
        return Err(InvalidDuration::NotPositive);
    }
    if too_long || total > MAX_NS {
        return Err(InvalidDuration::TooLong);
    }
    u64::try_from(total).map_err(|_| InvalidDuration::TooLong)
}

/// Parses one number with its unit. Returns its nanoseconds (`None`: too many) and the rest of the
/// text.
fn term(text: &str) -> Result<(Option<u128>, &str), InvalidDuration> {
    let (whole, rest) = digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(InvalidDuration::Malformed);
    }
    let end = rest
        .find(|character: char| character == '.' || character.is_ascii_digit())
        .unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(end);
    if unit.is_empty() {
        return Err(InvalidDuration::MissingUnit(
            text[..text.len() - rest.len()].to_owned(),
        ));
    }
    let Some((_, ns)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(InvalidDuration::UnknownUnit(unit.to_owned()));
    };
    let ns = u128::from(*ns);
    let whole = match whole {
        "" => Some(0),
        _ => whole.parse::<u128>().ok(),
    };
    let total = whole
        .and_then(|whole| whole.checked_mul(ns))
        .map(|whole| whole.saturating_add(fraction_ns(fraction, ns)));
    Ok((total, rest))
}

/// Returns the nanoseconds of the decimals `fraction` of a unit.
fn fraction_ns(fraction: &str, unit_ns: u128) -> u128 {
    // An hour's 13th decimal is below a nanosecond.
    const DECIMALS: usize = 18;
    let (value, scale) = fraction
        .bytes()
        .take(DECIMALS)
        .fold((0u128, 1u128), |(value, scale), digit| {
            (value * 10 + u128::from(digit - b'0'), scale * 10)
        });
    value * unit_ns / scale
}

/// Splits a text after its leading decimal digits.
fn digits(text: &str) -> (&str, &str) {
    let end = text
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_go_reads() {
        for (text, ns) in [
            ("1ns", 1),
            ("1us", 1_000),
            ("1\u{b5}s", 1_000),
            ("1\u{3bc}s", 1_000),
            ("1ms", 1_000_000),
            ("1s", 1_000_000_000),
            ("+1s", 1_000_000_000),
            ("1m", 60_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1.5h", 5_400_000_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("3m1h", 3_780_000_000_000),
            ("0h1s", 1_000_000_000),
            ("1.0000000019s", 1_000_000_001),
            ("0.000000000000000000000000001h1ns", 1),
            ("2562047h47m16.854775807s", 9_223_372_036_854_775_807),
        ] {
            assert_eq!(parse(text), Ok(ns), "{text}");
        }
    }

    #[test]
    fn days_have_24_hours_and_weeks_7_days() {
        const DAY: u64 = 86_400_000_000_000;
        for (text, ns) in [
            ("30d", 30 * DAY),
            ("1.5d", DAY * 3 / 2),
            ("1d12h", DAY * 3 / 2),
            ("2w", 14 * DAY),
        ] {
            assert_eq!(parse(text), Ok(ns), "{text}");
        }
    }

    #[test]
    fn refuses_other_units_and_what_is_not_positive() {
        use InvalidDuration::{Malformed, MissingUnit, NotPositive, TooLong, UnknownUnit};
        for (text, error) in [
            ("", Malformed),
            ("+", Malformed),
            (".", Malformed),
            (".s", Malformed),
            ("s", Malformed),
            ("1s ", UnknownUnit("s ".to_owned())),
            ("1y", UnknownUnit("y".to_owned())),
            ("1S", UnknownUnit("S".to_owned())),
            ("1s-1s", UnknownUnit("s-".to_owned())),
            ("5", MissingUnit("5".to_owned())),
            ("1h5", MissingUnit("5".to_owned())),
            ("0", NotPositive),
            ("0s", NotPositive),
            ("0.1ns", NotPositive),
            ("-1s", NotPositive),
            ("2562047h47m16.854775808s", TooLong),
            ("99999999999999999999999999999999999999999h", TooLong),
        ] {
            assert_eq!(parse(text), Err(error), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_sum_of_terms_is_the_sum(
            terms in prop::collection::vec((0u64..3_000, 0..UNITS.len()), 1..5),
        ) {
            let text = terms
                .iter()
                .map(|(value, unit)| format!("{value}{}", UNITS[*unit].0))
                .collect::<Vec<_>>()
                .concat();
            let sum: u64 = terms.iter().map(|(value, unit)| value * UNITS[*unit].1).sum();
            let expected = if sum == 0 { Err(InvalidDuration::NotPositive) } else { Ok(sum) };
            prop_assert_eq!(parse(&text), expected);
        }

        #[test]
        fn decimals_are_exact(ns in 1u64..=i64::MAX as u64) {
            let text = format!("{}.{:09}s", ns / 1_000_000_000, ns % 1_000_000_000);
            prop_assert_eq!(parse(&text), Ok(ns));
        }

        #[test]
        fn no_text_panics(text in "[-+]?([0-9.]{0,20}[a-zµ]{0,2}){0,4}|.*") {
            let _ = parse(&text);
        }
    }
}
