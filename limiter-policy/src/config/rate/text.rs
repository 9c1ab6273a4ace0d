//! Rates as one text, as the Python library `limits` has them: `10/minute`, `100 per 2 hours`, and
//! several: `2/second; 10/minute`.

use super::super::nearest;
use crate::{policy::Rate, text};

/// The field with all of it in one text, which may have several rates.
pub(in super::super) const RATE: &str = "rate";

/// The units, the Python library's: without calendars.
const UNITS: [(&str, u64); 6] = [
    ("second", SECOND_NS),
    ("minute", 60 * SECOND_NS),
    ("hour", 3_600 * SECOND_NS),
    ("day", DAY_NS),
    ("month", 30 * DAY_NS),
    ("year", 360 * DAY_NS),
];

const SECOND_NS: u64 = 1_000_000_000;
const DAY_NS: u64 = 86_400 * SECOND_NS;

/// What stands between two rates.
const SEPARATORS: [char; 3] = [',', ';', '|'];

/// The largest count, as in Boulder.
const MAX_COUNT: u64 = i64::MAX.unsigned_abs();

/// One rate of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Written<'t> {
    /// As it is written.
    pub(super) text: &'t str,
    /// The byte of the whole text where it begins.
    pub(super) offset: usize,
    /// How many.
    pub(super) count: u64,
    /// In how many nanoseconds; `u64::MAX`: in that many or more.
    pub(super) period_ns: u64,
}

/// Why a text is none of rates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InvalidRate<'t> {
    /// The rate as it is written.
    pub(super) text: &'t str,
    /// The byte of the whole text where it goes wrong.
    pub(super) offset: usize,
    /// What is wrong.
    pub(super) why: String,
}

/// Whether a text is one of rates.
pub(in super::super) fn is_valid(text: &str) -> bool {
    parse(text).is_ok()
}

/// The rates of a text, at least one.
pub(super) fn parse(text: &str) -> Result<Vec<Written<'_>>, InvalidRate<'_>> {
    let several = text.contains(SEPARATORS);
    text.split(SEPARATORS)
        .map(|part| {
            // Both are slices of the same text.
            let offset = part.as_ptr().addr() - text.as_ptr().addr();
            let rest = part.trim_start();
            let offset = offset + part.len() - rest.len();
            let part = rest.trim_end();
            let mut scanner = Scanner { rest, offset };
            let rate = if several && part.is_empty() {
                scanner.wrong("a rate must stand before and after each ',', ';' and '|'")
            } else {
                scanner.rate()
            };
            match rate {
                Ok((count, period_ns)) => Ok(Written {
                    text: part,
                    offset,
                    count,
                    period_ns,
                }),
                Err((offset, why)) => Err(InvalidRate {
                    text: part,
                    offset,
                    why,
                }),
            }
        })
        .collect()
}

/// A rate as such a text has it, but for a period that is no whole number of seconds.
#[must_use]
pub fn written(count: u64, period_ns: u64) -> String {
    let unit = UNITS
        .iter()
        .rev()
        .find(|(_, length)| period_ns.is_multiple_of(*length));
    match unit {
        Some((name, length)) if period_ns == *length => format!("{count}/{name}"),
        Some((name, length)) => format!("{count}/{} {name}s", period_ns / length),
        None => format!("{count}/{}", text::period(period_ns)),
    }
}

/// Rates as one text.
pub(in super::super) fn several(rates: &[Rate]) -> String {
    let rates = rates.iter();
    let rates: Vec<_> = rates
        .map(|rate| written(rate.count, rate.period_ns))
        .collect();
    rates.join("; ")
}

/// What is left of one rate.
struct Scanner<'t> {
    rest: &'t str,
    offset: usize,
}

/// Where it goes wrong, and why.
type Wrong = (usize, String);

impl<'t> Scanner<'t> {
    /// Count and period of the rate.
    fn rate(&mut self) -> Result<(u64, u64), Wrong> {
        let count = self.count()?;
        self.blanks();
        if !self.take("/") && !self.take("per") {
            return self.wrong("expected '/' or 'per' after the number, as in '10/minute'");
        }
        self.blanks();
        let multiple = self.multiple()?;
        self.blanks();
        let unit_ns = self.unit()?;
        self.blanks();
        if !self.rest.is_empty() {
            return self.wrong("expected ',', ';' or '|' before another rate");
        }
        Ok((count, multiple.saturating_mul(unit_ns)))
    }

    fn count(&mut self) -> Result<u64, Wrong> {
        let (at, number) = (self.offset, self.number());
        if number.is_empty() {
            return self.wrong("expected a rate, such as '10/minute' or '100 per 2 hours'");
        }
        match digits(number).map_err(|why| (at, why))? {
            count if count > MAX_COUNT => Err((at, format!("must be at most {MAX_COUNT}"))),
            count => Ok(count),
        }
    }

    /// How many units the period has.
    fn multiple(&mut self) -> Result<u64, Wrong> {
        let (at, number) = (self.offset, self.number());
        if number.is_empty() {
            return Ok(1);
        }
        digits(number).map_err(|why| (at, format!("the number '{number}' of units {why}")))
    }

    /// A unit's nanoseconds.
    fn unit(&mut self) -> Result<u64, Wrong> {
        let at = self.offset;
        let word = self.while_of(char::is_alphanumeric);
        let singular = word.strip_suffix(['s', 'S']).unwrap_or(word);
        let is_unit =
            |name: &str| name.eq_ignore_ascii_case(word) || name.eq_ignore_ascii_case(singular);
        if let Some((_, ns)) = UNITS.iter().find(|(name, _)| is_unit(name)) {
            return Ok(*ns);
        }
        let names = UNITS.map(|(name, _)| name);
        if word.is_empty() {
            let why = format!("its unit is missing: {}", nearest::alternatives(&names));
            return Err((at, why));
        }
        // An abbreviation is nearer to what it begins than letters that are merely alike.
        let begun = if singular.is_empty() { word } else { singular };
        let begun = begun.to_lowercase();
        let why = match names.iter().find(|name| name.starts_with(&begun)) {
            Some(name) => format!("unknown unit '{word}', did you mean '{name}'?"),
            None => nearest::unknown("unit", word, &names),
        };
        Err((at, why))
    }

    /// What stands where a number should, up to a letter, a blank or a '/'.
    fn number(&mut self) -> &'t str {
        self.while_of(|character| {
            !character.is_whitespace() && !character.is_alphabetic() && character != '/'
        })
    }

    fn blanks(&mut self) {
        self.while_of(char::is_whitespace);
    }

    fn while_of(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|character| !belongs(character));
        let (taken, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.offset += taken.len();
        self.rest = rest;
        taken
    }

    /// Takes a text of ASCII in any case, if it comes next.
    fn take(&mut self, text: &str) -> bool {
        let next = self.rest.split_at_checked(text.len());
        let Some((_, rest)) = next.filter(|(next, _)| next.eq_ignore_ascii_case(text)) else {
            return false;
        };
        self.offset += text.len();
        self.rest = rest;
        true
    }

    fn wrong<T>(&self, why: &str) -> Result<T, Wrong> {
        Err((self.offset, why.to_owned()))
    }
}

/// A number above 0; `u64::MAX` for larger ones. Or what it must be instead.
fn digits(number: &str) -> Result<u64, String> {
    if number.starts_with('-') {
        return Err("must be > 0".to_owned());
    }
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("must be a whole number, in digits".to_owned());
    }
    match number.parse() {
        Ok(0) => Err("must be > 0".to_owned()),
        Ok(number) => Ok(number),
        // Nothing but digits, and too many of them.
        Err(_) => Ok(u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MINUTE_NS: u64 = 60 * SECOND_NS;
    const HOUR_NS: u64 = 60 * MINUTE_NS;

    /// The rates of a text, as counts and periods.
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
        // Blanks may stand everywhere and nowhere, and letters are of either case.
        check("  7\tPER\n3  Minutes  ", &[(7, 3 * MINUTE_NS)]);
        check("7per3MINUTES;1/hour", &[(7, 3 * MINUTE_NS), (1, HOUR_NS)]);
        check("007/01 second", &[(7, SECOND_NS)]);
        check("1\u{a0}/\u{3000}second", &[(1, SECOND_NS)]);
        check(
            "9223372036854775807/99999999999999999999 years",
            &[(MAX_COUNT, u64::MAX)],
        );
    }

    /// Where a text goes wrong, in which rate, and why.
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
        let between = "a rate must stand before and after each ',', ';' and '|'";
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
            "must be a whole number, in digits",
        );
        check_error(
            "+1/second",
            0,
            "+1/second",
            "must be a whole number, in digits",
        );
        check_error("-1/second", 0, "-1/second", "must be > 0");
        check_error("1/day; 0/second", 7, "0/second", "must be > 0");
        check_error(
            "1/0 seconds",
            2,
            "1/0 seconds",
            "the number '0' of units must be > 0",
        );
        check_error(
            "1/1.5 hours",
            2,
            "1/1.5 hours",
            "the number '1.5' of units must be a whole number, in digits",
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
    fn units_that_are_none() {
        for (unit, near) in [
            ("sec", "second"),
            ("secs", "second"),
            ("s", "second"),
            ("seconde", "second"),
            ("secondss", "second"),
            ("MIN", "minute"),
            ("m", "minute"),
            ("mon", "month"),
            ("h", "hour"),
            ("hous", "hour"),
            ("y", "year"),
        ] {
            let text = format!("1/{unit}");
            let why = format!("unknown unit '{unit}', did you mean '{near}'?");
            check_error(&text, 2, &text, &why);
        }
        check_error(
            "1/week",
            2,
            "1/week",
            "unknown unit 'week', must be one of second, minute, hour, day, month, year",
        );
    }

    fn blanks() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec!["", " ", "  ", "\t"])
    }

    /// A rate as the grammar has it, with its count and period.
    fn rate() -> impl Strategy<Value = (String, (u64, u64))> {
        let number =
            (1..=MAX_COUNT, 0..63_u32).prop_map(|(number, shift)| (number >> shift).max(1));
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
                let text = format!(
                    "{before}{count}{left}{per}{right}{units}{between}{name}{plural}{after}"
                );
                (text, (count, multiple.unwrap_or(1).saturating_mul(ns)))
            })
    }

    proptest! {
        #[test]
        fn what_is_of_the_grammar_is_read(
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
}
