//! Numbers and prefixes as people read and write them.

use ipnet::IpNet;
use limiter_common::address::Family;

/// Returns a family's name: `IPv4`.
pub(crate) const fn family(family: Family) -> &'static str {
    match family {
        Family::V4 => "IPv4",
        Family::V6 => "IPv6",
    }
}

/// Formats a prefix, a single address without its length: `192.0.2.1`, `192.0.2.0/24`.
#[must_use]
pub fn short(prefix: IpNet) -> String {
    if prefix.prefix_len() == prefix.max_prefix_len() {
        prefix.addr().to_string()
    } else {
        prefix.to_string()
    }
}

/// Formats a count with its thousands apart: `1 048 576`.
#[must_use]
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Formats a duration in nanoseconds as configuration files spell it, in the largest unit that
/// gives a whole number: `90m`.
#[must_use]
pub fn period(ns: u64) -> String {
    const UNITS: [(u64, &str); 5] = [
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
    ];
    let mut units = UNITS.iter();
    let (length, unit) = units
        .find(|(length, _)| ns.is_multiple_of(*length))
        .unwrap_or(&(1, "ns"));
    format!("{}{unit}", ns / length)
}

/// Puts an untrusted text on one line: escapes its control characters.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_in_thousands() {
        let check = |number, text: &str| assert_eq!(count(number), text);
        check(0, "0");
        check(999, "999");
        check(1_000, "1 000");
        check(1_048_576, "1 048 576");
    }

    #[test]
    fn periods_in_their_largest_whole_unit() {
        let check = |ns, text: &str| assert_eq!(period(ns), text);
        check(1, "1ns");
        check(1_500, "1500ns");
        check(250_000_000, "250ms");
        check(1_000_000_000, "1s");
        check(5_400_000_000_000, "90m");
        check(86_400_000_000_000, "24h");
    }
}
