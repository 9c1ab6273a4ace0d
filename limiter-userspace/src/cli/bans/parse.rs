//! Parses the parts of a ban from the command line or a stream.

use ipnet::IpNet;
use limiter_fleet::bans::LONGEST_MS;
use limiter_policy::config::duration::{self, InvalidDuration};
use limiter_protocol::bans::BanReason;

use crate::cli::parse::{ParsedValue, prefix};

/// A ban this long or longer, in nanoseconds, has no end: programs express "for ever" by the largest number
/// they have, and nodes of a fleet accept no later end.
const FOR_EVER_NS: u64 = LONGEST_MS * 1_000_000;

/// Parses an address or a prefix that may be banned.
pub(in crate::cli) fn bannable(text: &str) -> Result<ParsedValue<IpNet>, String> {
    let prefix = prefix(text)?;
    if prefix.value.prefix_len() == 0 {
        return Err("it would ban everybody".to_owned());
    }
    Ok(prefix)
}

/// Parses a prefix from a stream. Errors quote the text, because the user does not see the line.
pub(super) fn stream_prefix(text: &str) -> Result<ParsedValue<IpNet>, String> {
    bannable(text).map_err(|error| format!("invalid '{text}': {error}"))
}

/// Returns whether a text means a ban without end, as in fail2ban.
pub(super) fn is_for_ever(text: &str) -> bool {
    matches!(text, "-1" | "-1s")
}

/// The length of a ban.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::cli) struct BanLength {
    /// Nanoseconds; `None`: until it is lifted.
    pub(in crate::cli) ns: Option<u64>,
}

/// Parses the length of a ban.
pub(in crate::cli) fn length(text: &str) -> Result<ParsedValue<BanLength>, String> {
    if is_for_ever(text) {
        return Ok(ParsedValue::default());
    }
    limited_length(text).map_err(|error| error.to_string())
}

/// Parses the length of a ban with an end. A length beyond the maximum becomes a ban without end, with a
/// warning.
pub(super) fn limited_length(text: &str) -> Result<ParsedValue<BanLength>, InvalidDuration> {
    match duration::parse(text) {
        Ok(ns) if ns < FOR_EVER_NS => Ok(ParsedValue::plain(BanLength { ns: Some(ns) })),
        Ok(_) | Err(InvalidDuration::TooLong) => Ok(ParsedValue::corrected(
            BanLength::default(),
            text,
            "for ever, as are a hundred years and more",
        )),
        Err(error) => Err(error),
    }
}

/// Parses the reason for a ban, and cuts a long one.
pub(in crate::cli) fn reason(text: &str) -> Result<BanReason, String> {
    BanReason::cut(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes() {
        let check = |text: &str, expected: Result<&str, &str>| {
            let expected = expected.map(|text| text.parse::<IpNet>().unwrap());
            assert_eq!(
                bannable(text).map(|prefix| prefix.value),
                expected.map_err(ToOwned::to_owned),
                "{text}"
            );
        };
        check("192.0.2.7", Ok("192.0.2.7/32"));
        check("2001:db8::/48", Ok("2001:db8::/48"));
        check("172.20.5.7/16", Ok("172.20.0.0/16"));
        check("::ffff:192.0.2.1", Ok("192.0.2.1/32"));
        check("[2001:db8::1]", Ok("2001:db8::1/128"));
        for text in ["0.0.0.0/0", "::/0", "192.0.2.7/0", "::ffff:0:0/96"] {
            check(text, Err("it would ban everybody"));
        }
        // A query may be for all of IPv6.
        assert_eq!(
            prefix("::/0"),
            Ok(ParsedValue::plain("::/0".parse().unwrap()))
        );
        for text in ["", "[2001:db8::1", "eth0", "192.0.2", "192.0.2.1-9"] {
            let expected = "expected an address or a prefix, such as 192.0.2.1 or 2001:db8::/48";
            check(text, Err(expected));
        }
    }

    #[test]
    fn lengths() {
        let for_ever = ParsedValue::default();
        for (text, ns) in [
            ("1d", 86_400_000_000_000),
            ("876000h", FOR_EVER_NS),
            ("3153599999s", FOR_EVER_NS - 1_000_000_000),
        ] {
            let expected = (ns < FOR_EVER_NS).then_some(ns);
            assert_eq!(length(text).unwrap().value.ns, expected, "{text}");
        }
        for text in ["-1", "-1s"] {
            assert_eq!(length(text), Ok(for_ever.clone()));
        }
        for text in ["140737488355327s", &format!("{}w", "9".repeat(50))] {
            let read = length(text).unwrap();
            assert_eq!(read.value, for_ever.value);
            let warning = format!("'{text}' is read as for ever, as are a hundred years and more");
            assert_eq!(read.warning, Some(warning));
        }
        for text in ["-2", "-1m", "0", "-1 s"] {
            assert!(length(text).is_err(), "{text}");
        }
    }

    #[test]
    fn reasons_are_one_short_line() {
        assert_eq!(reason("").unwrap().as_str(), "");
        assert_eq!(reason(&"é".repeat(44)).unwrap().as_str().len(), 88);
        // The cut falls between two characters.
        assert_eq!(reason(&"é".repeat(45)).unwrap().as_str(), "é".repeat(44));
        let long = format!("x{}", "é".repeat(44));
        assert_eq!(reason(&long).unwrap().as_str().len(), 87);
        let check = |text: &str, expected: &str| assert_eq!(reason(text).unwrap_err(), expected);
        for text in ["two\nlines", "\u{1b}[31mred", "a\0"] {
            check(
                text,
                "a reason is one line of text, without control characters",
            );
        }
    }
}
