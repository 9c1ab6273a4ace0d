//! Parses the parts of a ban from the command line or a stream.

use ipnet::IpNet;
use limiter_policy::config::duration;

pub(super) use crate::cli::parse::prefix;
use crate::protocol::bans::BanReason;

/// Parses an address or a prefix that may be banned.
pub(in crate::cli) fn bannable(text: &str) -> Result<IpNet, String> {
    let prefix = prefix(text)?;
    if prefix.prefix_len() == 0 {
        return Err("it would ban everybody".to_owned());
    }
    Ok(prefix)
}

/// Parses a prefix from a stream. Errors quote the text, because the user does not see the line.
pub(super) fn streamed(text: &str) -> Result<IpNet, String> {
    bannable(text).map_err(|error| format!("invalid '{text}': {error}"))
}

/// Returns whether a text says that a ban never ends, as fail2ban does.
pub(super) fn is_for_ever(text: &str) -> bool {
    matches!(text, "-1" | "-1s")
}

/// How long a ban lasts, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::cli) struct BanLength {
    /// `None`: until it is lifted.
    pub(in crate::cli) ns: Option<u64>,
}

/// Parses how long a ban lasts.
pub(in crate::cli) fn length(text: &str) -> Result<BanLength, String> {
    if is_for_ever(text) {
        return Ok(BanLength::default());
    }
    match duration::parse(text) {
        Ok(ns) => Ok(BanLength { ns: Some(ns) }),
        Err(error) => Err(error.to_string()),
    }
}

/// Parses the reason for a ban, of which only the beginning is kept if it is long.
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
                bannable(text),
                expected.map_err(ToOwned::to_owned),
                "{text}"
            );
        };
        check("192.0.2.7", Ok("192.0.2.7/32"));
        check("2001:db8::/48", Ok("2001:db8::/48"));
        check(
            "192.0.2.7/24",
            Err("must have no host bits set, did you mean '192.0.2.0/24'?"),
        );
        // No packet has such a source, so the ban would have no effect.
        check(
            "::ffff:192.0.2.1",
            Err("which stands for an IPv4 address, did you mean '192.0.2.1'?"),
        );
        check("0.0.0.0/0", Err("it would ban everybody"));
        check("::/0", Err("it would ban everybody"));
        // A query may name all of IPv6.
        assert_eq!(prefix("::/0"), Ok("::/0".parse().unwrap()));
        for text in ["", "[2001:db8::1]", "eth0", "192.0.2", "192.0.2.1-9"] {
            let expected = "expected an address or a prefix, such as 192.0.2.1 or 2001:db8::/48";
            check(text, Err(expected));
        }
    }

    #[test]
    fn lengths() {
        let day = BanLength {
            ns: Some(86_400_000_000_000),
        };
        assert_eq!(length("1d"), Ok(day));
        for text in ["-1", "-1s"] {
            assert_eq!(length(text), Ok(BanLength::default()));
        }
        for text in ["-2", "-1m", "0", "-1 s"] {
            assert!(length(text).is_err(), "{text}");
        }
    }

    #[test]
    fn reasons_are_one_short_line() {
        assert_eq!(reason("").unwrap().as_str(), "");
        assert_eq!(reason(&"é".repeat(44)).unwrap().as_str().len(), 88);
        // Between two characters.
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
