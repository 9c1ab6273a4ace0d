//! Reads lines: `ADDRESS|PREFIX [DURATION] [REASON]` bans, `-ADDRESS|PREFIX` or `unban
//! ADDRESS|PREFIX` lifts a ban. A line that starts with `#` is a comment.

use std::io::{BufRead, Read as _};

use super::item::{Ended, Item, ItemNumber, Sink};
use crate::{
    cli::bans::{parse, terms::Terms},
    protocol::bans::{BanChange, BanRequest},
};

/// The longest line, in bytes.
const LONGEST: u64 = 4_096;

pub(super) fn read(input: &mut impl BufRead, terms: &Terms, sink: &Sink) -> Result<(), Ended> {
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        let line = input.by_ref().take(LONGEST).read_until(b'\n', &mut bytes);
        match line {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => return sink.put(Item::Broken(error.to_string())),
        }
        let item_number = ItemNumber::Line(number);
        if bytes.last() != Some(&b'\n') && bytes.len() as u64 == LONGEST {
            sink.put(Item::Bad(
                item_number,
                format!("longer than {LONGEST} bytes"),
            ))?;
            if let Err(error) = input.skip_until(b'\n') {
                return sink.put(Item::Broken(error.to_string()));
            }
            continue;
        }
        let parsed = match str::from_utf8(&bytes) {
            Ok(text) => parse(text.trim(), terms),
            Err(_) => Err("not valid UTF-8".to_owned()),
        };
        match parsed {
            Ok(None) => {}
            Ok(Some(change)) => sink.put(Item::Change(item_number, change))?,
            Err(error) => sink.put(Item::Bad(item_number, error))?,
        }
    }
    Ok(())
}

/// Parses a line; `None` if it is empty or a comment.
fn parse(line: &str, terms: &Terms) -> Result<Option<BanChange>, String> {
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (whom, rest) = word(line);
    let lifted = match whom.strip_prefix('-') {
        Some(whom) => Some((whom, rest)),
        None if whom == "unban" => Some(word(rest)),
        None => None,
    };
    if let Some((whom, rest)) = lifted {
        let prefix = parse::streamed(whom)?;
        return if rest.is_empty() {
            Ok(Some(BanChange::Unban(prefix)))
        } else {
            Err(format!(
                "nothing may follow the address to unban, but '{rest}' does"
            ))
        };
    }
    let prefix = parse::streamed(whom)?;
    // A reason that begins with a number is taken for a malformed duration: better an error than a
    // ban that never ends.
    let (for_ns, reason) = if rest.starts_with(|first: char| first.is_ascii_digit()) {
        let (duration, reason) = word(rest);
        let ns = parse::duration_ns(duration)
            .map_err(|error| format!("invalid duration '{duration}': {error}"))?;
        (Some(ns), reason)
    } else {
        (terms.for_ns, rest)
    };
    let reason = if reason.is_empty() {
        terms.reason.clone()
    } else {
        parse::reason(reason)?
    };
    Ok(Some(BanChange::Ban(BanRequest {
        prefix,
        for_ns,
        reason,
    })))
}

/// Splits off the first word.
fn word(text: &str) -> (&str, &str) {
    match text.split_once(char::is_whitespace) {
        Some((word, rest)) => (word, rest.trim_start()),
        None => (text, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::bans::BanReason;

    fn terms() -> Terms {
        Terms {
            for_ns: Some(60),
            reason: BanReason::try_from("the stream's".to_owned()).unwrap(),
        }
    }

    #[test]
    fn lines() {
        let ban = |prefix: &str, for_ns, reason: &str| {
            Ok(Some(BanChange::Ban(BanRequest {
                prefix: prefix.parse().unwrap(),
                for_ns,
                reason: BanReason::try_from(reason.to_owned()).unwrap(),
            })))
        };
        let unban = |prefix: &str| Ok(Some(BanChange::Unban(prefix.parse().unwrap())));
        let error = |text: &str| Err(text.to_owned());
        let rows = [
            ("", Ok(None)),
            ("# 192.0.2.1", Ok(None)),
            ("192.0.2.1", ban("192.0.2.1/32", Some(60), "the stream's")),
            (
                "192.0.2.1 10s",
                ban("192.0.2.1/32", Some(10_000_000_000), "the stream's"),
            ),
            (
                "2001:db8::/48\t1h  two words",
                ban("2001:db8::/48", Some(3_600_000_000_000), "two words"),
            ),
            (
                "192.0.2.1 ssh: 3 failures",
                ban("192.0.2.1/32", Some(60), "ssh: 3 failures"),
            ),
            ("-192.0.2.1", unban("192.0.2.1/32")),
            ("unban 192.0.2.0/24", unban("192.0.2.0/24")),
            (
                "192.0.2.1 3 failures",
                error(
                    "invalid duration '3': its unit is missing: ns, us, ms, s, m or h, such as '3s'",
                ),
            ),
            (
                "-192.0.2.1 10s",
                error("nothing may follow the address to unban, but '10s' does"),
            ),
            (
                "192.0.2.1/24",
                error(
                    "invalid '192.0.2.1/24': must have no host bits set, did you mean \
                     '192.0.2.0/24'?",
                ),
            ),
            (
                "0.0.0.0/0",
                error("invalid '0.0.0.0/0': it would ban everybody"),
            ),
            (
                "unban",
                error(
                    "invalid '': expected an address or a prefix, such as 192.0.2.1 or \
                     2001:db8::/48",
                ),
            ),
        ];
        for (line, expected) in rows {
            assert_eq!(parse(line, &terms()), expected, "{line}");
        }
    }
}
