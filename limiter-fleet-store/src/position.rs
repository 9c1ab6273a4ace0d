//! Positions in a stream.

use std::fmt;

/// The position of a message in a stream: a time in milliseconds, and a sequence number within that
/// millisecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    ms: u64,
    number: u64,
}

impl Position {
    /// The last position: a stream with a message there takes no others.
    pub const LAST: Self = Self {
        ms: u64::MAX,
        number: u64::MAX,
    };

    /// Returns the time, in milliseconds since 1970 by the store's clock, and the sequence number.
    #[must_use]
    pub const fn parts(self) -> (u64, u64) {
        (self.ms, self.number)
    }

    /// Reads a position in the store's format; `None`: the text is malformed.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let (ms, number) = std::str::from_utf8(text).ok()?.split_once('-')?;
        Some(Self {
            ms: ms.parse().ok()?,
            number: number.parse().ok()?,
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
        let position = Position::parse(b"1700000000000-3").unwrap();
        assert_eq!(position.to_string(), "1700000000000-3");
        assert_eq!(position.parts(), (1_700_000_000_000, 3));
        assert!(position > Position::parse(b"1700000000000-2").unwrap());
        assert!(Position::parse(b"9-0").unwrap() < Position::parse(b"10-0").unwrap());
        let last = Position::parse(b"18446744073709551615-18446744073709551615");
        assert_eq!(last, Some(Position::LAST));
        for text in [&b""[..], b"1", b"-1", b"1-", b"a-1", b"1-\xff"] {
            assert_eq!(Position::parse(text), None);
        }
    }
}
