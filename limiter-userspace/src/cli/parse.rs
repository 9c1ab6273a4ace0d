//! Parses what several commands are given.

use std::{net::IpAddr, time::Duration};

use ipnet::IpNet;
use limiter_policy::{
    config::duration,
    policy::DnsMatch,
    prefix::{Invalid, Written},
};

/// Parses an address or a prefix.
pub(super) fn prefix(text: &str) -> Result<IpNet, String> {
    const EXPECTED: &str = "an address or a prefix, such as 192.0.2.1 or 2001:db8::/48";
    let prefix = Written::parse(text).and_then(Written::prefix);
    prefix.map_err(|error| error.why(EXPECTED))
}

/// Parses an address or a prefix. An IPv4-mapped one is the IPv4 address that it stands for: so a
/// server that listens for both families sees its IPv4 clients.
pub(super) fn client(text: &str) -> Result<IpNet, String> {
    match Written::parse(text) {
        // A shorter prefix stands for no IPv4 one.
        Err(Invalid::Ipv4Mapped(ipv4)) if ipv4.contains('/') == text.contains('/') => prefix(&ipv4),
        _ => prefix(text),
    }
}

/// Parses an address.
pub(super) fn address(text: &str) -> Result<IpAddr, String> {
    const EXPECTED: &str = "one address, such as 192.0.2.1 or 2001:db8::1";
    let prefix = Written::parse(text).and_then(Written::prefix);
    match prefix {
        Ok(prefix) if !text.contains('/') => Ok(prefix.addr()),
        Ok(_) | Err(Invalid::HostBits(_)) => Err(format!(
            "expected {EXPECTED}; `limiter bans` and `limiter lists test` take a prefix, too"
        )),
        Err(error) => Err(error.why(EXPECTED)),
    }
}

/// Parses a type of DNS questions.
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
    fn clients_of_servers_for_both_families() {
        for (text, expected) in [
            ("192.0.2.1", "192.0.2.1/32"),
            ("::ffff:192.0.2.1", "192.0.2.1/32"),
            ("::ffff:192.0.2.0/120", "192.0.2.0/24"),
            ("2001:db8::1", "2001:db8::1/128"),
        ] {
            assert_eq!(client(text), Ok(expected.parse().unwrap()), "{text}");
        }
        for text in ["", "::ffff:192.0.2.1/120", "::ffff:192.0.2.1/64", "lobby"] {
            client(text).unwrap_err();
        }
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
            assert_eq!(address(text), Ok(text.parse().unwrap()));
        }
        let expected = "expected one address, such as 192.0.2.1 or 2001:db8::1";
        for text in ["", "eth0", "192.0.2.300"] {
            assert_eq!(address(text), Err(expected.to_owned()), "{text}");
        }
        let too_long = "the prefix length of an IPv4 address is at most 32";
        assert_eq!(address("192.0.2.1/33"), Err(too_long.to_owned()));
        for text in [
            "192.0.2.0/24",
            "192.0.2.1/24",
            "2001:db8::/48",
            "192.0.2.1/32",
        ] {
            let expected =
                format!("{expected}; `limiter bans` and `limiter lists test` take a prefix, too");
            assert_eq!(address(text), Err(expected), "{text}");
        }
        let mapped = address("::ffff:192.0.2.1").unwrap_err();
        assert!(mapped.ends_with("did you mean '192.0.2.1'?"), "{mapped}");
    }
}
