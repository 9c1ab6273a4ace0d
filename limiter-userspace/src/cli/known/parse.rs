//! Parses how long an operator trusts a source, from the command line or a stream.

use limiter_policy::config::duration;
use limiter_protocol::known::KnownChange;

use crate::cli::{
    parse::{self, ParsedValue},
    stream::lines::word,
};

const SECOND_NS: u64 = 1_000_000_000;
const YEAR_NS: u64 = 365 * 86_400 * SECOND_NS;

/// Parses how long an operator trusts a source, in nanoseconds.
pub(super) fn duration_ns(text: &str) -> Result<u64, String> {
    let ns = duration::parse(text).map_err(|error| error.to_string())?;
    // The datapath counts in ticks of a second, for at most four and a half years.
    if (10 * SECOND_NS..=4 * YEAR_NS).contains(&ns) {
        Ok(ns)
    } else {
        Err("must be from 10s to four years (1460d)".to_owned())
    }
}

/// Parses a line of a stream that is neither empty nor a comment: `ADDRESS|PREFIX [DURATION]`
/// trusts, `-ADDRESS|PREFIX` untrusts.
pub(super) fn line(line: &str, for_ns: u64) -> Result<ParsedValue<KnownChange>, String> {
    // Quote the text, as the user does not see the line.
    let prefix =
        |text: &str| parse::prefix(text).map_err(|error| format!("invalid '{text}': {error}"));
    let (target, rest) = word(line);
    let (length, more) = word(rest);
    let nothing_follows = |item: &str, rest: &str| match rest {
        "" => Ok(()),
        rest => Err(format!("nothing may follow {item}, but '{rest}' does")),
    };
    if let Some(target) = target.strip_prefix('-') {
        nothing_follows("the address to forget", rest)?;
        return Ok(prefix(target)?.map(KnownChange::Untrust));
    }
    nothing_follows("the duration", more)?;
    let for_ns = match length {
        "" => for_ns,
        length => {
            duration_ns(length).map_err(|error| format!("invalid duration '{length}': {error}"))?
        }
    };
    Ok(prefix(target)?.map(|prefix| KnownChange::Trust { prefix, for_ns }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration_ns("30d"), Ok(30 * 86_400 * SECOND_NS));
        assert_eq!(duration_ns("10s"), Ok(10 * SECOND_NS));
        assert_eq!(duration_ns("1460d"), Ok(4 * YEAR_NS));
        let range = "must be from 10s to four years (1460d)";
        for text in ["9s", "1ns", "1461d"] {
            assert_eq!(duration_ns(text), Err(range.to_owned()), "{text}");
        }
        assert_eq!(duration_ns("0"), Err("must be > 0".to_owned()));
    }

    #[test]
    fn lines() {
        let know = |prefix: &str, for_ns| {
            Ok(KnownChange::Trust {
                prefix: prefix.parse().unwrap(),
                for_ns,
            })
        };
        let rows = [
            ("192.0.2.1", know("192.0.2.1/32", 60)),
            ("192.0.2.1 10s", know("192.0.2.1/32", 10 * SECOND_NS)),
            ("::ffff:192.0.2.1", know("192.0.2.1/32", 60)),
            ("192.0.2.1/24", know("192.0.2.0/24", 60)),
            (
                "2001:db8::/64\t1d",
                know("2001:db8::/64", 86_400 * SECOND_NS),
            ),
            (
                "-192.0.2.0/24",
                Ok(KnownChange::Untrust("192.0.2.0/24".parse().unwrap())),
            ),
        ];
        for (text, expected) in rows {
            assert_eq!(line(text, 60).map(|line| line.value), expected, "{text}");
        }
        let rows = [
            (
                "192.0.2.1 1x",
                "invalid duration '1x': unknown unit 'x', must be one of",
            ),
            ("192.0.2.1 1ms", "invalid duration '1ms': must be from 10s"),
            (
                "192.0.2.1 10s player",
                "nothing may follow the duration, but 'player' does",
            ),
            (
                "-192.0.2.1 10s",
                "nothing may follow the address to forget, but '10s' does",
            ),
            ("lobby", "invalid 'lobby': expected an address or a prefix"),
        ];
        for (text, expected) in rows {
            let error = line(text, 60).unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }
}
