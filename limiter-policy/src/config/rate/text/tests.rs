use proptest::prelude::*;

use super::*;

const MINUTE_NS: u64 = 60 * SECOND_NS;
const HOUR_NS: u64 = 60 * MINUTE_NS;

/// Checks a text's rates, as counts and periods.
#[track_caller]
fn check(text: &str, expected: &[(u64, u64)]) {
    let rates = parse(text).unwrap();
    let rates: Vec<_> = rates
        .iter()
        .map(|rate| (rate.count, rate.period_ns))
        .collect();
    assert_eq!(rates, expected, "{text}");
}

#[test]
fn what_the_library_reads() {
    check("10/minute", &[(10, MINUTE_NS)]);
    check("2 per second", &[(2, SECOND_NS)]);
    check("100/2 hours", &[(100, 2 * HOUR_NS)]);
    check("100 per 2 hours", &[(100, 2 * HOUR_NS)]);
    check("2/second; 10/minute", &[(2, SECOND_NS), (10, MINUTE_NS)]);
    check(
        "1/day,2/month|3/year",
        &[(1, DAY_NS), (2, 30 * DAY_NS), (3, 360 * DAY_NS)],
    );
    // Blanks may be anywhere or missing, and letters in either case.
    check("  7\tPER\n3  Minutes  ", &[(7, 3 * MINUTE_NS)]);
    check("7per3MINUTES;1/hour", &[(7, 3 * MINUTE_NS), (1, HOUR_NS)]);
    check("007/01 second", &[(7, SECOND_NS)]);
    check("1\u{a0}/\u{3000}second", &[(1, SECOND_NS)]);
    check(
        "9223372036854775807/99999999999999999999 years",
        &[(MAX_COUNT, u64::MAX)],
    );
}

/// Checks the position of the error, the quoted rate, and the message.
#[track_caller]
fn check_error(text: &str, offset: usize, of: &str, why: &str) {
    let expected = InvalidRate {
        text: of,
        offset,
        why: why.to_owned(),
    };
    assert_eq!(parse(text), Err(expected), "{text}");
}

#[test]
fn what_the_library_refuses() {
    let rate = "expected a rate, such as '10/minute' or '100 per 2 hours'";
    let between = "a rate is needed before and after each ',', ';' and '|'";
    let slash = "expected '/' or 'per' after the number, as in '10/minute'";
    let units = "second, minute, hour, day, month or year";
    check_error("", 0, "", rate);
    check_error("  ", 2, "", rate);
    check_error("/second", 0, "/second", rate);
    check_error("ten/second", 0, "ten/second", rate);
    check_error("1/second;", 9, "", between);
    check_error("; 1/second", 0, "", between);
    check_error("1/second,;1/minute", 9, "", between);
    check_error("10", 2, "10", slash);
    check_error("10 minutes", 3, "10 minutes", slash);
    check_error("1e3/second", 1, "1e3/second", slash);
    check_error("10/", 3, "10/", &format!("its unit is missing: {units}"));
    check_error(
        "10 per 5",
        8,
        "10 per 5",
        &format!("its unit is missing: {units}"),
    );
    check_error(
        "1.5/second",
        0,
        "1.5/second",
        "must be a whole number, such as 250 or 10k",
    );
    check_error(
        "+1/second",
        0,
        "+1/second",
        "must be a whole number, such as 250 or 10k",
    );
    check_error("-1/second", 0, "-1/second", "must be > 0");
    check_error("1/day; 0/second", 7, "0/second", ZERO);
    check_error("7bit/s", 0, "7bit/s", "must be at least 8bit: a byte");
    check_error(
        "1/0 seconds",
        2,
        "1/0 seconds",
        "the number of units '0' must be > 0",
    );
    check_error(
        "1/1.5 hours",
        2,
        "1/1.5 hours",
        "the number of units '1.5' must be a whole number, such as 250 or 10k",
    );
    check_error(
        "9223372036854775808/second",
        0,
        "9223372036854775808/second",
        "must be at most 9223372036854775807",
    );
    check_error(
        "99999999999999999999/second",
        0,
        "99999999999999999999/second",
        "must be at most 9223372036854775807",
    );
    check_error(
        "1/minute 2/hour",
        9,
        "1/minute 2/hour",
        "expected ',', ';' or '|' before another rate",
    );
}

#[test]
fn unknown_units() {
    for (unit, near) in [
        ("seconde", "second"),
        ("secondss", "second"),
        ("mon", "month"),
        ("hous", "hour"),
        ("y", "year"),
    ] {
        let text = format!("1/{unit}");
        let why = format!("unknown unit '{unit}', did you mean '{near}'?");
        check_error(&text, 2, &text, &why);
    }
    check_error(
        "1/fortnight",
        2,
        "1/fortnight",
        "unknown unit 'fortnight', must be one of second, minute, hour, day, month, year",
    );
}

#[test]
fn short_units_and_large_numbers() {
    for unit in ["s", "S", "sec", "secs"] {
        check(&format!("10/{unit}"), &[(10, SECOND_NS)]);
    }
    for unit in ["m", "min", "mins"] {
        check(&format!("10/5 {unit}"), &[(10, 5 * MINUTE_NS)]);
    }
    check("10/h, 10/d", &[(10, HOUR_NS), (10, DAY_NS)]);
    check(
        "10/w; 10 per 2 weeks",
        &[(10, 7 * DAY_NS), (10, 14 * DAY_NS)],
    );
    check(
        "10k/s; 5M per minute",
        &[(10_000, SECOND_NS), (5_000_000, MINUTE_NS)],
    );
    check("1G/10m", &[(1_000_000_000, 10 * MINUTE_NS)]);
    check_error(
        "10m/s",
        2,
        "10m/s",
        "expected '/' or 'per' after the number, as in '10/minute'",
    );
    check_error(
        "9223372036854775807k/s",
        0,
        "9223372036854775807k/s",
        "must be at most 9223372036854775807",
    );
}

fn blanks() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", " ", "  ", "\t"])
}

/// Generates a rate of the grammar, with its count and period.
fn rate() -> impl Strategy<Value = (String, (u64, u64))> {
    let number = (1..=MAX_COUNT, 0..63_u32).prop_map(|(number, shift)| (number >> shift).max(1));
    (
        number,
        prop::sample::select(vec!["/", "per", "PER", "Per"]),
        prop::option::of(prop_oneof![1..100_u64, 1..u64::MAX]),
        0..UNITS.len(),
        prop::sample::select(vec!["", "s", "S"]),
        any::<bool>(),
        prop::array::uniform5(blanks()),
    )
        .prop_map(|(count, per, multiple, unit, plural, upper, blanks)| {
            let (name, ns) = UNITS[unit];
            let name = if upper {
                name.to_uppercase()
            } else {
                name.to_owned()
            };
            let [before, left, right, between, after] = blanks;
            let units = multiple.map_or_else(String::new, |units| units.to_string());
            let text =
                format!("{before}{count}{left}{per}{right}{units}{between}{name}{plural}{after}");
            (text, (count, multiple.unwrap_or(1).saturating_mul(ns)))
        })
}

proptest! {
    #[test]
    fn texts_of_the_grammar_are_read(
        rates in prop::collection::vec((rate(), prop::sample::select(SEPARATORS.to_vec())), 1..5),
    ) {
        let mut text = String::new();
        for ((rate, _), separator) in &rates {
            if !text.is_empty() {
                text.push(*separator);
            }
            text.push_str(rate);
        }
        let found: Vec<_> = parse(&text)
            .unwrap()
            .iter()
            .map(|rate| (rate.count, rate.period_ns))
            .collect();
        let expected: Vec<_> = rates.iter().map(|((_, rate), _)| *rate).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn what_is_written_is_read_again(count in 1..=MAX_COUNT, seconds in 1..4_000_000_000_u64) {
        let text = written(count, seconds * SECOND_NS);
        let rates = parse(&text).unwrap();
        prop_assert_eq!((rates[0].count, rates[0].period_ns), (count, seconds * SECOND_NS));
    }

    #[test]
    fn no_text_panics(text in "([0-9]{0,21}[ /.;,|-]?(per|Sec|minutes)?){0,4}|.*") {
        if let Err(error) = parse(&text) {
            prop_assert!(text.is_char_boundary(error.offset));
        }
    }
}
