//! Parsers for values that several commands take.

use std::{fmt, net::IpAddr, time::Duration};

use ipnet::IpNet;
use limiter_policy::{
    config::duration,
    policy::DnsMatch,
    prefix::meant,
    text::{one_line, short},
};

use super::output::warn;

/// A value from a program or a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ParsedValue<T> {
    pub(super) value: T,
    /// A warning if the value differs from its spelling; `None`: it does not.
    pub(super) warning: Option<String>,
}

impl<T> ParsedValue<T> {
    /// Wraps a value without a warning.
    pub(super) const fn plain(value: T) -> Self {
        Self {
            value,
            warning: None,
        }
    }

    /// Adds a warning that a text means something else, shown as `meant`.
    pub(super) fn corrected(value: T, text: &str, meant: impl fmt::Display) -> Self {
        Self {
            value,
            warning: Some(format!("'{text}' is read as {meant}")),
        }
    }

    pub(super) fn map<U>(self, into: impl FnOnce(T) -> U) -> ParsedValue<U> {
        ParsedValue {
            value: into(self.value),
            warning: self.warning,
        }
    }

    /// Joins two parts of a text, with both warnings.
    pub(super) fn and<U>(self, other: ParsedValue<U>) -> ParsedValue<(T, U)> {
        let warnings = self.warning.into_iter().chain(other.warning);
        ParsedValue {
            value: (self.value, other.value),
            warning: warnings.reduce(|all, warning| format!("{all}; {warning}")),
        }
    }
}

impl<T: Clone> ParsedValue<T> {
    /// Warns of a corrected value, so that the user sees the address that the output is about.
    pub(super) fn value_with_warning(&self) -> T {
        if let Some(warning) = &self.warning {
            warn(&one_line(warning));
        }
        self.value.clone()
    }
}

/// Warns of each corrected value.
pub(super) fn values_with_warnings<T: Clone>(all: &[ParsedValue<T>]) -> Vec<T> {
    all.iter().map(ParsedValue::value_with_warning).collect()
}

pub(super) fn prefix(text: &str) -> Result<ParsedValue<IpNet>, String> {
    read(
        text,
        "an address or a prefix, such as 192.0.2.1 or 2001:db8::/48",
    )
}

pub(super) fn address(text: &str) -> Result<ParsedValue<IpAddr>, String> {
    const EXPECTED: &str = "one address, such as 192.0.2.1 or 2001:db8::1";
    let prefix = read(text, EXPECTED)?;
    if prefix.value.prefix_len() < prefix.value.max_prefix_len() {
        return Err(format!(
            "expected {EXPECTED}; `limiter bans` and `limiter lists test` take a prefix, too"
        ));
    }
    Ok(prefix.map(|prefix| prefix.addr()))
}

fn read(text: &str, expected: &str) -> Result<ParsedValue<IpNet>, String> {
    let meant = meant(text).map_err(|error| error.why(expected))?;
    Ok(if meant.is_corrected {
        ParsedValue::corrected(meant.prefix, text, short(meant.prefix))
    } else {
        ParsedValue::plain(meant.prefix)
    })
}

pub(super) fn dns_type(text: &str) -> Result<u16, String> {
    let number = DnsMatch::type_of(text).or_else(|| text.parse().ok());
    number.ok_or_else(|| "expected a type, such as ANY, 257 or TYPE257".to_owned())
}

/// Parses how long to wait or to look back: a duration, or seconds.
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    const FROM: Duration = Duration::from_millis(100);
    const TO: Duration = Duration::from_hours(24);
    let seconds = || Duration::try_from_secs_f64(text.parse().ok()?).ok();
    let parsed = duration::parse(text)
        .ok()
        .map(Duration::from_nanos)
        .or_else(seconds);
    parsed
        .filter(|interval| (FROM..=TO).contains(interval))
        .ok_or_else(|| "expected a duration from 100ms to 1d, such as 10s, or seconds".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_says_what_was_read_otherwise() {
        for (text, expected, warning) in [
            ("192.0.2.1", "192.0.2.1/32", None),
            (
                "::ffff:192.0.2.1",
                "192.0.2.1/32",
                Some("'::ffff:192.0.2.1' is read as 192.0.2.1"),
            ),
            (
                "192.0.2.1/24",
                "192.0.2.0/24",
                Some("'192.0.2.1/24' is read as 192.0.2.0/24"),
            ),
        ] {
            let read = prefix(text).unwrap();
            assert_eq!(read.value, expected.parse().unwrap());
            assert_eq!(read.warning.as_deref(), warning);
        }
        let both = prefix("::1/8")
            .unwrap()
            .and(address("::ffff:1.2.3.4").unwrap());
        let expected = "'::1/8' is read as ::/8; '::ffff:1.2.3.4' is read as 1.2.3.4";
        assert_eq!(both.warning.as_deref(), Some(expected));
    }

    #[test]
    fn intervals() {
        for (text, ms) in [
            ("1", Some(1_000)),
            ("0.5", Some(500)),
            ("10s", Some(10_000)),
            ("1m", Some(60_000)),
            ("1d", Some(86_400_000)),
            ("86400", Some(86_400_000)),
            ("2d", None),
            ("0", None),
            ("99ms", None),
            ("-1", None),
            ("often", None),
        ] {
            let expected = ms.map(Duration::from_millis);
            assert_eq!(interval(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn one_address() {
        for text in ["192.0.2.1", "2001:db8::1", "::"] {
            assert_eq!(address(text), Ok(ParsedValue::plain(text.parse().unwrap())));
        }
        for text in ["192.0.2.1/32", "::ffff:192.0.2.1", "::ffff:192.0.2.1/128"] {
            assert_eq!(
                address(text).unwrap().value,
                "192.0.2.1".parse::<IpAddr>().unwrap()
            );
        }
        let expected = "expected one address, such as 192.0.2.1 or 2001:db8::1";
        for text in ["", "eth0", "192.0.2.300"] {
            assert_eq!(address(text), Err(expected.to_owned()), "{text}");
        }
        let too_long = "the prefix length of an IPv4 address is at most 32";
        assert_eq!(address("192.0.2.1/33"), Err(too_long.to_owned()));
        for text in ["192.0.2.0/24", "192.0.2.1/24", "2001:db8::/48"] {
            let expected =
                format!("{expected}; `limiter bans` and `limiter lists test` take a prefix, too");
            assert_eq!(address(text), Err(expected), "{text}");
        }
    }
}
