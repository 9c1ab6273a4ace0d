//! Names of fleets and of their nodes.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

/// The most characters of a name.
const MOST: usize = 63;

/// A name of a fleet or of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Box<str>", into = "Box<str>")]
pub struct Name(Arc<str>);

/// Why a text is no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidName;

impl fmt::Display for InvalidName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "expected 1 to {MOST} characters of a-z, 0-9, '-', '_' and '.', of which the first is a \
             letter or a digit"
        )
    }
}

impl std::error::Error for InvalidName {}

impl Name {
    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns a text that is below all names.
    pub(crate) fn first() -> Self {
        Self(Arc::default())
    }

    /// Returns whether there are clones.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

impl TryFrom<Box<str>> for Name {
    type Error = InvalidName;

    fn try_from(text: Box<str>) -> Result<Self, InvalidName> {
        if is_word(&text, MOST) {
            Ok(Self(text.into()))
        } else {
            Err(InvalidName)
        }
    }
}

impl TryFrom<&str> for Name {
    type Error = InvalidName;

    fn try_from(text: &str) -> Result<Self, InvalidName> {
        Box::<str>::from(text).try_into()
    }
}

impl From<Name> for Box<str> {
    fn from(name: Name) -> Self {
        name.as_str().into()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Returns whether a text has 1 to `most` characters that are safe in a terminal and in a key of the store.
pub(crate) fn is_word(text: &str, most: usize) -> bool {
    let is_first = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() <= most
        && text.bytes().next().is_some_and(is_first)
        && text
            .bytes()
            .all(|byte| is_first(byte) || b"-_.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for good in ["a", "edge-1", "0.eu_west", &"x".repeat(MOST)] {
            assert_eq!(Name::try_from(good).unwrap().as_str(), good);
        }
        for bad in ["", "-a", "A", "a b", "a{", "ä", &"x".repeat(MOST + 1)] {
            assert_eq!(Name::try_from(bad), Err(InvalidName), "{bad}");
        }
    }
}
