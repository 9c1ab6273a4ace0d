//! Positions in a stream of messages.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The position of a message in a stream, by the store: no node's clock matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    /// The store's time, in milliseconds since 1970.
    pub ms: u64,
    /// The sequence number within that millisecond.
    pub number: u64,
}

impl Position {
    /// The last position: a stream with a message there takes no others.
    pub const LAST: Self = Self {
        ms: u64::MAX,
        number: u64::MAX,
    };
}

/// A text is no position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidPosition;

/// Reads a position in the store's format.
impl FromStr for Position {
    type Err = InvalidPosition;

    fn from_str(text: &str) -> Result<Self, InvalidPosition> {
        let (ms, number) = text.split_once('-').ok_or(InvalidPosition)?;
        let number_of = |text: &str| text.parse().map_err(|_| InvalidPosition);
        Ok(Self {
            ms: number_of(ms)?,
            number: number_of(number)?,
        })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.ms, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions() {
        let read = |text: &str| text.parse::<Position>();
        for text in ["1700000000000-3", &Position::LAST.to_string()] {
            assert_eq!(read(text).map(|read| read.to_string()).as_deref(), Ok(text));
        }
        assert!(read("9-0").unwrap() < read("10-0").unwrap());
        for text in ["", "1", "-1", "1-", "a-1", "1-x"] {
            assert_eq!(read(text), Err(InvalidPosition), "{text}");
        }
    }
}
