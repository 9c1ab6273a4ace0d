//! DNS names in the notation of configurations, and patterns of names.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use thiserror::Error;

/// The most labels of a name: the datapath keeps their numbers as bits.
const MOST_LABELS: usize = 63;

/// The longest label, and the longest name on the wire, with the empty label at its end, in bytes.
const LONGEST_LABEL: usize = 63;
const LONGEST_NAME: usize = 255;

/// The beginning of a pattern for all names below one.
const BELOW: &str = "*.";

/// The pattern for all names below the root.
const EVERY: &str = "*";

/// A DNS name in lower case, without a dot at its end; empty: the root.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DnsName(String);

/// A text is no DNS name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidDnsName {
    /// It has an empty label, or none.
    #[error("must have no empty label, and be '.' for the root")]
    EmptyLabel,
    /// It has an asterisk.
    #[error("must have no '*' here")]
    Asterisk,
    /// It has letters beyond ASCII.
    #[error(
        "must have its internationalized labels in the form in which they are asked for, such as \
         'xn--bcher-kva' for 'bücher'"
    )]
    Unicode,
    /// It has another invalid character.
    #[error("must consist of letters, digits, '-', '_', '/' and dots, not '{0}'")]
    Character(char),
    /// A label is too long.
    #[error("must have no label of more than {LONGEST_LABEL} bytes")]
    LongLabel,
    /// It is too long.
    #[error("must have at most 253 bytes and {MOST_LABELS} labels")]
    Long,
}

/// Parses a name in any case, with or without a dot at its end.
impl FromStr for DnsName {
    type Err = InvalidDnsName;

    fn from_str(text: &str) -> Result<Self, InvalidDnsName> {
        if text == "." {
            return Ok(Self::default());
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        for label in name.split('.') {
            if label.is_empty() {
                return Err(InvalidDnsName::EmptyLabel);
            }
            let wrong = |one: &char| !(one.is_ascii_alphanumeric() || "-_/".contains(*one));
            match label.chars().find(wrong) {
                Some('*') => return Err(InvalidDnsName::Asterisk),
                Some(one) if !one.is_ascii() => return Err(InvalidDnsName::Unicode),
                Some(one) => return Err(InvalidDnsName::Character(one)),
                None => {}
            }
            if label.len() > LONGEST_LABEL {
                return Err(InvalidDnsName::LongLabel);
            }
        }
        let name = Self(name.to_ascii_lowercase());
        if name.wire().len() > LONGEST_NAME || name.label_count() > MOST_LABELS {
            return Err(InvalidDnsName::Long);
        }
        Ok(name)
    }
}

/// Formats the name as a configuration has it.
impl fmt::Display for DnsName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_empty() { "." } else { &self.0 })
    }
}

impl DnsName {
    fn labels(&self) -> impl Iterator<Item = &str> {
        self.0.split('.').filter(|label| !label.is_empty())
    }

    /// Returns how many labels it has; the root has none.
    #[must_use]
    pub fn label_count(&self) -> usize {
        self.labels().count()
    }

    /// Returns the name in wire format, with the empty label at its end.
    #[must_use]
    pub fn wire(&self) -> Vec<u8> {
        let mut wire = Vec::with_capacity(self.0.len() + 2);
        for label in self.labels() {
            // Labels are at most 63 bytes long.
            wire.extend(u8::try_from(label.len()));
            wire.extend(label.bytes());
        }
        wire.push(0);
        wire
    }

    /// Returns the name with its first label removed; `None`: it is the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        if self.0.is_empty() {
            return None;
        }
        let parent = self.0.split_once('.').map_or("", |(_, parent)| parent);
        Some(Self(parent.to_owned()))
    }

    /// Returns the pattern of the names below it.
    #[must_use]
    pub const fn pattern_below(self) -> NamePattern {
        NamePattern {
            name: self,
            below: true,
        }
    }

    /// Returns the name and its ancestors, from the longest to the root.
    pub fn with_ancestors(&self) -> impl Iterator<Item = Self> {
        std::iter::once(self.clone()).chain(self.ancestors())
    }

    /// Returns its ancestors, from the longest to the root.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> {
        std::iter::successors(self.parent(), Self::parent)
    }
}

/// A pattern of names in questions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamePattern {
    /// The name.
    pub name: DnsName,
    /// Whether the pattern means the names below `name`, not the name itself.
    pub below: bool,
}

impl NamePattern {
    /// Returns whether it matches all names but the root.
    #[must_use]
    pub fn is_every(&self) -> bool {
        self.below && self.name == DnsName::default()
    }

    /// Returns whether it matches a name.
    #[must_use]
    pub fn has(&self, name: &DnsName) -> bool {
        if self.below {
            name.ancestors().any(|one| one == self.name)
        } else {
            *name == self.name
        }
    }
}

/// Returns whether `these` match all names that `others` match. An empty list matches all names.
pub(super) fn has_names(these: &[NamePattern], others: &[NamePattern]) -> bool {
    let has = |one: &NamePattern| {
        let mut these = these.iter();
        these.any(|pattern| pattern == one || pattern.has(&one.name))
    };
    these.is_empty() || !others.is_empty() && others.iter().all(has)
}

/// Parses a name, or `*.` before one, or `*`, as it is displayed.
impl FromStr for NamePattern {
    type Err = InvalidDnsName;

    fn from_str(text: &str) -> Result<Self, InvalidDnsName> {
        if text == EVERY {
            return Ok(DnsName::default().pattern_below());
        }
        let (below, name) = match text.strip_prefix(BELOW) {
            Some(name) => (true, name),
            None => (false, text),
        };
        let name = name.parse()?;
        Ok(Self { name, below })
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_every() {
            return formatter.write_str(EVERY);
        }
        if self.below {
            formatter.write_str(BELOW)?;
        }
        write!(formatter, "{}", self.name)
    }
}

/// Serializes a type as its text.
macro_rules! serde_as_text {
    ($($type:ty),*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'d> Deserialize<'d> for $type {
            fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(D::Error::custom)
            }
        }
    )*};
}

serde_as_text!(DnsName, NamePattern);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_have_one_spelling() {
        for (text, shown, wire) in [
            ("example.com", "example.com", &b"\x07example\x03com\0"[..]),
            ("EXAMPLE.Com.", "example.com", b"\x07example\x03com\0"),
            ("_dmarc.a-b", "_dmarc.a-b", b"\x06_dmarc\x03a-b\0"),
            (
                "0/25.2.0.192.in-addr.arpa",
                "0/25.2.0.192.in-addr.arpa",
                b"\x040/25\x012\x010\x03192\x07in-addr\x04arpa\0",
            ),
            (".", ".", b"\0"),
        ] {
            let name: DnsName = text.parse().unwrap();
            assert_eq!(name.to_string(), shown);
            assert_eq!(name.wire(), wire);
        }
    }

    #[test]
    fn what_is_no_name() {
        let long_label = "a".repeat(64);
        let long = [
            "a".repeat(63),
            "a".repeat(63),
            "a".repeat(63),
            "a".repeat(62),
        ]
        .join(".");
        let many = ["a"; 64].join(".");
        for (text, why) in [
            ("", InvalidDnsName::EmptyLabel),
            ("a..b", InvalidDnsName::EmptyLabel),
            (".a", InvalidDnsName::EmptyLabel),
            ("a..", InvalidDnsName::EmptyLabel),
            ("*.a", InvalidDnsName::Asterisk),
            ("bücher.example", InvalidDnsName::Unicode),
            ("a b", InvalidDnsName::Character(' ')),
            ("a\\.b", InvalidDnsName::Character('\\')),
            (&long_label, InvalidDnsName::LongLabel),
            (&long, InvalidDnsName::Long),
            (&many, InvalidDnsName::Long),
        ] {
            assert_eq!(text.parse::<DnsName>(), Err(why), "{text}");
        }
        // One byte less has room.
        assert!(long[1..].parse::<DnsName>().is_ok());
    }

    #[test]
    fn patterns_have_names_or_those_below() {
        let name = |text: &str| text.parse::<DnsName>().unwrap();
        let below: NamePattern = "*.Example.com".parse().unwrap();
        let exact: NamePattern = "example.com".parse().unwrap();
        for (text, is_below, is_exact) in [
            ("example.com", false, true),
            ("www.example.com", true, false),
            ("a.b.example.com", true, false),
            ("wwwexample.com", false, false),
            ("com", false, false),
        ] {
            assert_eq!(below.has(&name(text)), is_below, "{text}");
            assert_eq!(exact.has(&name(text)), is_exact, "{text}");
        }
        assert_eq!(below.to_string(), "*.example.com");
        let every: NamePattern = "*".parse().unwrap();
        assert!(every.is_every() && every.has(&name("com")) && !every.has(&name(".")));
        assert_eq!(every.to_string(), "*");
        assert!("a.*.b".parse::<NamePattern>().is_err());
        assert!("*.".parse::<NamePattern>().is_err());
    }

    proptest! {
        #[test]
        fn a_name_printed_is_read_as_itself(text in "[a-zA-Z0-9_-]{1,9}(\\.[a-z0-9/]{1,5}){0,6}\\.?") {
            let name: DnsName = text.parse().unwrap();
            prop_assert_eq!(name.to_string().parse::<DnsName>(), Ok(name));
        }

        #[test]
        fn no_text_panics(text in ".{0,300}") {
            let _ = text.parse::<NamePattern>();
        }
    }
}
