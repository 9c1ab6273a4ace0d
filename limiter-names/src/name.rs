//! Host names in one canonical form, in which they are compared, kept and shown.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str,
};

/// The longest name, without a dot at its end (RFC 1035, 2.3.4).
const LONGEST: usize = 253;

/// The longest label, the part between two dots.
const LONGEST_LABEL: usize = 63;

/// The canonical name of a host: lower case, without a dot at its end.
///
/// A client chooses it, and it reaches terminals, files and command lines. So it has only ASCII letters, digits, dots,
/// hyphens and underscores, and does not begin with a hyphen.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Box<str>);

/// The reason why bytes are no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    /// The bytes are empty.
    Empty,
    /// The bytes are an address.
    Address,
    /// The bytes have other characters or labels, or are longer than names may be.
    Refused,
}

impl Name {
    /// Parses a name as in hellos, without a port.
    pub fn new(bytes: &[u8]) -> Result<Self, NameError> {
        let bytes = bytes.strip_suffix(b".").unwrap_or(bytes);
        let text = str::from_utf8(bytes).map_err(|_| NameError::Refused)?;
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if is_address(text) {
            return Err(NameError::Address);
        }
        let is_label = |label: &str| {
            let letters = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            (1..=LONGEST_LABEL).contains(&label.len()) && label.bytes().all(letters)
        };
        // A program could take it for an option.
        if text.len() > LONGEST || text.starts_with('-') || !text.split('.').all(is_label) {
            return Err(NameError::Refused);
        }
        Ok(Self(text.to_ascii_lowercase().into()))
    }

    /// Parses a name as in HTTP, with or without a port (RFC 9110, 4.2.1).
    pub fn of_authority(bytes: &[u8]) -> Result<Self, NameError> {
        if bytes.first() == Some(&b'[') {
            let inner = bytes[1..].split(|byte| *byte == b']').next();
            let inner = inner.and_then(|inner| str::from_utf8(inner).ok());
            return Err(
                match inner.and_then(|inner| inner.parse::<Ipv6Addr>().ok()) {
                    Some(_) => NameError::Address,
                    None => NameError::Refused,
                },
            );
        }
        let mut parts = bytes.splitn(2, |byte| *byte == b':');
        let host = parts.next().unwrap_or_default();
        let port = parts.next().unwrap_or_default();
        if port.len() > 5 || !port.iter().all(u8::is_ascii_digit) {
            return Err(NameError::Refused);
        }
        Self::new(host)
    }

    /// The name as text.
    #[must_use]
    pub const fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a host's text is an address. Old forms such as `127.1` and `0x7f.1` count too: no name ends in a number.
fn is_address(text: &str) -> bool {
    if text.parse::<IpAddr>().is_ok() || text.parse::<Ipv4Addr>().is_ok() {
        return true;
    }
    let last = text.rsplit('.').next().unwrap_or_default();
    let hexadecimal = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn named(bytes: &[u8]) -> String {
        Name::new(bytes).unwrap().as_str().to_owned()
    }

    #[test]
    fn a_name_has_one_form() {
        assert_eq!(named(b"Example.COM"), "example.com");
        assert_eq!(named(b"example.com."), "example.com");
        assert_eq!(named(b"xn--bcher-kva.example"), "xn--bcher-kva.example");
        assert_eq!(named(b"_dmarc.a-b.example"), "_dmarc.a-b.example");
        assert_eq!(named(b"localhost"), "localhost");
        assert_eq!(named(b"1.example"), "1.example");
    }

    #[test]
    fn a_port_is_taken_off() {
        for authority in [
            "Example.com:8443",
            "example.com",
            "example.com:",
            "example.com.:80",
        ] {
            let name = Name::of_authority(authority.as_bytes()).unwrap();
            assert_eq!(name.as_str(), "example.com");
        }
        for authority in [
            "example.com:80a",
            "example.com:123456",
            "a:b@example.com",
            "a@b.c:80",
        ] {
            let refused = Name::of_authority(authority.as_bytes());
            assert_eq!(refused, Err(NameError::Refused), "{authority}");
        }
        // A hello has no ports.
        assert_eq!(Name::new(b"example.com:443"), Err(NameError::Refused));
    }

    #[test]
    fn an_address_is_no_name() {
        for text in [
            "192.0.2.1",
            "192.0.2.1.",
            "127.1",
            "0x7f.1",
            "1.0X7F",
            "2130706433",
            "::1",
        ] {
            assert_eq!(
                Name::new(text.as_bytes()),
                Err(NameError::Address),
                "{text}"
            );
        }
        for text in ["192.0.2.1:80", "[2001:db8::1]", "[2001:db8::1]:443"] {
            let refused = Name::of_authority(text.as_bytes());
            assert_eq!(refused, Err(NameError::Address), "{text}");
        }
        assert_eq!(Name::of_authority(b"[v1.x]"), Err(NameError::Refused));
        assert_eq!(Name::of_authority(b"["), Err(NameError::Refused));
    }

    #[test]
    fn nothing_reaches_a_terminal_but_letters_digits_and_three_signs() {
        for byte in 0..=u8::MAX {
            let name = Name::new(&[b'a', byte, b'b']);
            let expected = byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            assert_eq!(name.is_ok(), expected, "{byte:#x}");
        }
        for text in [
            "a..b",
            ".a",
            "..",
            "-rf.example",
            "a b",
            "b\u{fc}cher.example",
            "*.example",
        ] {
            assert_eq!(
                Name::new(text.as_bytes()),
                Err(NameError::Refused),
                "{text}"
            );
        }
        assert_eq!(Name::new(b""), Err(NameError::Empty));
        assert_eq!(Name::new(b"."), Err(NameError::Empty));
        assert_eq!(Name::of_authority(b":80"), Err(NameError::Empty));
    }

    #[test]
    fn a_name_has_a_longest_form() {
        let label = "a".repeat(63);
        let longest = format!("{label}.{label}.{label}.{}", "b".repeat(61));
        assert_eq!(longest.len(), 253);
        assert_eq!(named(longest.as_bytes()), longest);
        assert_eq!(named(format!("{longest}.").as_bytes()), longest);
        let longer = format!("{longest}b");
        assert_eq!(Name::new(longer.as_bytes()), Err(NameError::Refused));
        let label = "a".repeat(64);
        assert_eq!(Name::new(label.as_bytes()), Err(NameError::Refused));
    }
}
