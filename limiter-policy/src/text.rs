//! Numbers and prefixes as people read and write them.

use std::fmt::Write as _;

use ipnet::IpNet;
use limiter_common::address::Family;

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

/// Formats a number with its thousands apart: `1 048 576`.
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

/// Formats a duration in nanoseconds as in configuration files, in the largest unit that gives a whole
/// number: `90m`.
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

/// Puts an untrusted text on one line, and escapes the characters that control a terminal.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if acts_on_neighbours(character) {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

/// Escapes the characters that control a terminal in an untrusted text of several lines.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut lines = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => lines.push(character),
            acting if acts_on_neighbours(acting) => lines.extend(acting.escape_default()),
            other => lines.push(other),
        }
    }
    lines
}

/// Escapes the characters that control a terminal in JSON, without changing its meaning.
#[must_use]
pub fn visible_json(json: &str) -> String {
    let mut lines = String::with_capacity(json.len());
    for character in json.chars() {
        // ASCII controls, except the last (DEL), occur only outside of strings.
        if character < ' ' || !acts_on_neighbours(character) {
            lines.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(lines, "\\u{unit:04x}");
            }
        }
    }
    lines
}

/// Returns whether a character is invisible and acts on its neighbours: controls, and characters that change
/// direction or break lines.
fn acts_on_neighbours(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
                | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
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
    #[test]
    fn nothing_in_a_text_acts() {
        let text = "a\n<0>\u{1b}[2J\u{9b}1m\u{202e}\u{2028}\r\t\u{e0041}\u{7f}ä漢";
        let reported = r"a\n<0>\u{1b}[2J\u{9b}1m\u{202e}\u{2028}\r\t\u{e0041}\u{7f}ä漢";
        assert_eq!(one_line(text), reported);
        let lines = reported.replacen(r"\n", "\n", 1).replacen(r"\t", "\t", 1);
        assert_eq!(visible(text), lines);
        let json = serde_json::to_string(text).unwrap();
        let shown = visible_json(&json);
        assert_eq!(visible(&shown), shown);
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
    }
}
