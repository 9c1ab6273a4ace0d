//! Rates as a text, in the notation of the Python library `limits`: `10/minute`, `100 per 2 hours`,
//! or several: `2/second; 10/minute`; with the short units of durations, and `k`, `M` and `G`, too:
//! `10k/s`. For bytes also in bits: `100Mbit/s`.

use super::super::{nearest, numbers};
use crate::{policy::Rate, text};

/// The field with one or more rates as a text.
pub(in super::super) const RATE: &str = "rate";

/// The Python library's units, which ignore the calendar.
const UNITS: [(&str, u64); 6] = [
    ("second", SECOND_NS),
    ("minute", 60 * SECOND_NS),
    ("hour", 3_600 * SECOND_NS),
    ("day", DAY_NS),
    ("month", 30 * DAY_NS),
    ("year", 360 * DAY_NS),
];

/// Other names of units, which the library does not have; `m` is a minute, as in a duration.
const ABBREVIATIONS: [(&str, u64); 8] = [
    ("s", SECOND_NS),
    ("sec", SECOND_NS),
    ("m", 60 * SECOND_NS),
    ("min", 60 * SECOND_NS),
    ("h", 3_600 * SECOND_NS),
    ("d", DAY_NS),
    ("w", 7 * DAY_NS),
    ("week", 7 * DAY_NS),
];

const SECOND_NS: u64 = 1_000_000_000;
const DAY_NS: u64 = 86_400 * SECOND_NS;

/// The separators between two rates.
const SEPARATORS: [char; 3] = [',', ';', '|'];

/// Units of bits, as networks count: a thousand is 1000.
const BITS: [(&str, u64); 4] = [
    ("bit", 1),
    ("kbit", 1_000),
    ("Mbit", 1_000_000),
    ("Gbit", 1_000_000_000),
];

/// The error for a count of 0.
pub(super) const ZERO: &str = "must be > 0: to refuse everybody, use 'block'";

/// The largest count, as in Boulder.
const MAX_COUNT: u64 = i64::MAX.unsigned_abs();

/// One rate of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WrittenRate<'t> {
    /// The rate as written.
    pub(super) text: &'t str,
    /// The offset in the whole text, in bytes, where it begins.
    pub(super) offset: usize,
    /// How many tokens; bytes if it is in bits.
    pub(super) count: u64,
    /// Whether it is written in bits.
    pub(super) in_bits: bool,
    /// The period in nanoseconds, saturating at `u64::MAX`.
    pub(super) period_ns: u64,
}

/// The reason why a text is not one or more rates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InvalidRate<'t> {
    /// The rate as it is written.
    pub(super) text: &'t str,
    /// The offset of the error in the whole text, in bytes.
    pub(super) offset: usize,
    pub(super) why: String,
}

/// Returns whether a text is one or more rates.
pub(in super::super) fn is_valid(text: &str) -> bool {
    parse(text).is_ok()
}

/// Parses a text into its rates, at least one.
pub(super) fn parse(text: &str) -> Result<Vec<WrittenRate<'_>>, InvalidRate<'_>> {
    let several = text.contains(SEPARATORS);
    text.split(SEPARATORS)
        .map(|part| {
            // `part` is a slice of `text`.
            let offset = part.as_ptr().addr() - text.as_ptr().addr();
            let rest = part.trim_start();
            let offset = offset + part.len() - rest.len();
            let part = rest.trim_end();
            let mut scanner = Scanner { rest, offset };
            let rate = if several && part.is_empty() {
                scanner.wrong("a rate is needed before and after each ',', ';' and '|'")
            } else {
                scanner.rate()
            };
            match rate {
                Ok((count, in_bits, period_ns)) => Ok(WrittenRate {
                    text: part,
                    offset,
                    count,
                    in_bits,
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

/// Formats a rate in this notation, except for a period that is not a whole number of seconds.
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

/// Joins rates into one text.
pub(in super::super) fn several(rates: &[Rate]) -> String {
    let rates = rates.iter();
    let rates: Vec<_> = rates
        .map(|rate| written(rate.count, rate.period_ns))
        .collect();
    rates.join("; ")
}

/// The unread rest of a rate.
struct Scanner<'t> {
    rest: &'t str,
    offset: usize,
}

/// The offset of the error, and its message.
type ScanError = (usize, String);

impl<'t> Scanner<'t> {
    /// Reads the rate's count, whether it is in bits, and its period.
    fn rate(&mut self) -> Result<(u64, bool, u64), ScanError> {
        let (count, in_bits) = self.count()?;
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
        Ok((count, in_bits, multiple.saturating_mul(unit_ns)))
    }

    /// Reads a count, and whether it is in bits. Bits become bytes, rounded down.
    fn count(&mut self) -> Result<(u64, bool), ScanError> {
        let (at, number) = (self.offset, self.number());
        if number.is_empty() {
            return self.wrong("expected a rate, such as '10/minute' or '100 per 2 hours'");
        }
        if number.bytes().all(|byte| byte == b'0') {
            return Err((at, ZERO.to_owned()));
        }
        let number = digits(number).map_err(|why| (at, why))?;
        let bits = self.bits();
        let count = match bits {
            Some(bits) => {
                let bytes = u128::from(number) * u128::from(bits) / 8;
                u64::try_from(bytes).unwrap_or(u64::MAX)
            }
            None => number.saturating_mul(self.multiple_of()),
        };
        match count {
            0 => Err((at, "must be at least 8bit: a byte".to_owned())),
            count if count > MAX_COUNT => Err((at, format!("must be at most {MAX_COUNT}"))),
            count => Ok((count, bits.is_some())),
        }
    }

    /// Takes a unit of bits, if it comes next, and returns its number of bits.
    fn bits(&mut self) -> Option<u64> {
        let word = self.rest.trim_start();
        let end = word.find(|character: char| !character.is_alphabetic());
        let (word, rest) = word.split_at(end.unwrap_or(word.len()));
        let mut units = BITS.iter();
        let (_, bits) = units.find(|(name, _)| name.eq_ignore_ascii_case(word))?;
        self.offset += self.rest.len() - rest.len();
        self.rest = rest;
        Some(*bits)
    }

    /// Takes a letter such as `k` after a number, and returns its factor.
    fn multiple_of(&mut self) -> u64 {
        let mut rest = self.rest.chars();
        let times = rest.next().and_then(numbers::factor);
        let after = rest.as_str();
        match times {
            Some(times) if !rest.next().is_some_and(char::is_alphabetic) => {
                self.offset += self.rest.len() - after.len();
                self.rest = after;
                times
            }
            _ => 1,
        }
    }

    /// Reads the period's number of units.
    fn multiple(&mut self) -> Result<u64, ScanError> {
        let (at, number) = (self.offset, self.number());
        if number.is_empty() {
            return Ok(1);
        }
        digits(number).map_err(|why| (at, format!("the number of units '{number}' {why}")))
    }

    fn unit(&mut self) -> Result<u64, ScanError> {
        let at = self.offset;
        let word = self.while_of(char::is_alphanumeric);
        let singular = word.strip_suffix(['s', 'S']).unwrap_or(word);
        let is_unit =
            |name: &str| name.eq_ignore_ascii_case(word) || name.eq_ignore_ascii_case(singular);
        let mut units = UNITS.iter().chain(&ABBREVIATIONS);
        if let Some((_, ns)) = units.find(|(name, _)| is_unit(name)) {
            return Ok(*ns);
        }
        let names = UNITS.map(|(name, _)| name);
        if word.is_empty() {
            let why = format!("its unit is missing: {}", nearest::alternatives(&names));
            return Err((at, why));
        }
        // An abbreviation suggests the unit that begins with it, not the most similar one.
        let begun = if singular.is_empty() { word } else { singular };
        let begun = begun.to_lowercase();
        let why = match names.iter().find(|name| name.starts_with(&begun)) {
            Some(name) => format!("unknown unit '{word}', did you mean '{name}'?"),
            None => nearest::unknown("unit", word, &names),
        };
        Err((at, why))
    }

    /// Takes the text at a number's position, up to a letter, a blank or a '/'.
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

    /// Takes an ASCII text, ignoring case, if it comes next.
    fn take(&mut self, text: &str) -> bool {
        let next = self.rest.split_at_checked(text.len());
        let Some((_, rest)) = next.filter(|(next, _)| next.eq_ignore_ascii_case(text)) else {
            return false;
        };
        self.offset += text.len();
        self.rest = rest;
        true
    }

    fn wrong<T>(&self, why: &str) -> Result<T, ScanError> {
        Err((self.offset, why.to_owned()))
    }
}

/// Parses a number above 0, saturating at `u64::MAX`. The error states the expected value.
fn digits(number: &str) -> Result<u64, String> {
    if number.starts_with('-') {
        return Err("must be > 0".to_owned());
    }
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("must be a whole number, such as 250 or 10k".to_owned());
    }
    match number.parse() {
        Ok(0) => Err("must be > 0".to_owned()),
        Ok(number) => Ok(number),
        // Only digits, but too many.
        Err(_) => Ok(u64::MAX),
    }
}

#[cfg(test)]
mod tests;
