//! The interfaces to limit, as an operator writes them: names, or patterns of names.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Bytes that an alternative name may have: ALTIFNAMSIZ is 128, including the NUL. Names have fewer.
const MOST_BYTES: usize = 127;

/// An interface's name or alternative name, or a pattern of names, in which `*` stands for any characters and
/// `?` for one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InterfaceName(String);

/// The reason why no interface can match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidName {
    /// The kernel refuses it: `dev_valid_name` in net/core/dev.c.
    #[error(
        "expected 1 to {MOST_BYTES} bytes without '/', ':' and white space, such as 'eth0' or 'vnet*'"
    )]
    Name,
    /// It would mean something else to a shell.
    #[error(
        "expected no '[', ']', '{{', '}}' or '\\': of a shell's patterns only '*' and '?' are known, such as \
         'vnet*'"
    )]
    Pattern,
}

impl FromStr for InterfaceName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let is_forbidden =
            |character: char| matches!(character, '/' | ':') || character.is_whitespace();
        if !(1..=MOST_BYTES).contains(&text.len())
            || matches!(text, "." | "..")
            || text.contains(is_forbidden)
        {
            return Err(InvalidName::Name);
        }
        if text.contains(['[', ']', '{', '}', '\\']) {
            return Err(InvalidName::Pattern);
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl InterfaceName {
    /// Returns the text as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether it is a pattern, rather than one interface's name.
    #[must_use]
    pub fn is_pattern(&self) -> bool {
        self.0.contains(['*', '?'])
    }

    /// Returns whether it matches this name.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        // For each length: whether the pattern so far matches the name's prefix of that length.
        let mut reached = vec![false; name.len() + 1];
        reached[0] = true;
        for expected in self.0.chars() {
            if expected == '*' {
                let mut is_behind = false;
                for end in &mut reached {
                    is_behind |= *end;
                    *end = is_behind;
                }
                continue;
            }
            for end in (1..reached.len()).rev() {
                let fits = expected == '?' || expected == name[end - 1];
                reached[end] = fits && reached[end - 1];
            }
            reached[0] = false;
        }
        reached[name.len()]
    }
}

/// Returns the plain names, without the patterns.
pub fn names(interfaces: &[InterfaceName]) -> impl Iterator<Item = &str> {
    let names = interfaces.iter().filter(|name| !name.is_pattern());
    names.map(InterfaceName::as_str)
}

/// Returns whether one of them is this very name; patterns do not count.
#[must_use]
pub fn is_named(interfaces: &[InterfaceName], name: &str) -> bool {
    names(interfaces).any(|named| named == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<InterfaceName, InvalidName> {
        text.parse()
    }

    #[test]
    fn a_name_stands_for_itself() {
        let name = parse("eth0").unwrap();
        assert!(!name.is_pattern());
        assert!(name.matches("eth0"));
        for other in ["", "eth", "eth00", "Eth0", "aeth0"] {
            assert!(!name.matches(other), "{other}");
        }
    }

    #[test]
    fn a_pattern_stands_for_names_as_a_shells() {
        for (pattern, name, expected) in [
            ("vnet*", "vnet", true),
            ("vnet*", "vnet12", true),
            ("vnet*", "vne", false),
            ("vnet*", "avnet0", false),
            ("*", "", true),
            ("*", "eth0", true),
            ("**", "eth0", true),
            ("?", "", false),
            ("?", "é", true),
            ("?", "é0", false),
            ("eth?", "eth0", true),
            ("eth?", "eth", false),
            ("eth?", "eth10", false),
            ("eth?*", "eth10", true),
            ("*0", "eth0", true),
            ("*0", "eth01", false),
            ("*0", "00", true),
            ("e*h*0", "eth1h0", true),
            ("e*h*0", "eth1h", false),
            ("*a*b?c", "xaybbzc", true),
            ("*ab", "aab", true),
            ("v*v", "v", false),
        ] {
            let pattern = parse(pattern).unwrap();
            assert!(pattern.is_pattern());
            assert_eq!(pattern.matches(name), expected, "{pattern} {name}");
        }
        // A pattern with many ways to match takes no exponential time.
        let slow = parse(&"*a".repeat(60)).unwrap();
        assert!(!slow.matches(&"a".repeat(59)));
    }

    #[test]
    fn what_no_interface_can_be_called_is_refused() {
        let long = "*".repeat(MOST_BYTES);
        assert!(parse(&long).is_ok());
        let longer = format!("{long}a");
        for text in ["", ".", "..", "a/b*", "a:1", "a b", "a\n", longer.as_str()] {
            assert_eq!(parse(text), Err(InvalidName::Name), "{text}");
        }
        for text in ["vnet[0-9]", "vnet[0", "eth]", "{eth0,eth1}", "eth\\*"] {
            assert_eq!(parse(text), Err(InvalidName::Pattern), "{text}");
        }
    }

    #[test]
    fn names_are_told_from_patterns() {
        let both = [parse("vnet*").unwrap(), parse("eth0").unwrap()];
        assert!(names(&both).eq(["eth0"]));
        assert!(is_named(&both, "eth0"));
        assert!(!is_named(&both, "vnet0") && !is_named(&both, "vnet*"));
    }
}
