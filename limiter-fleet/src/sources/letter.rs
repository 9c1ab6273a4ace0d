//! Letters about known sources, and their seals.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::word::{Slot, Word};
use crate::{
    Name,
    envelope::{Envelope, Keys, OpenError, SEAL, read, written},
};

/// The most words in a news letter.
pub const MOST_NEWS: usize = 256;

/// The most words in a slot letter.
pub const MOST_OF_SLOT: usize = 1_024;

/// The most bytes of a word: its source and two times of 40 bits, with room to spare.
const LONGEST_WORD: usize = 32;

/// The most bytes of the rest of a letter.
const REST: usize = 128;

/// The part of a node's sources that a letter covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// The sources with a changed word.
    News,
    /// All sources of a slot.
    Slot(Slot),
}

/// A node's words about sources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceLetter {
    /// The node.
    pub node: Name,
    /// When it was sent, in milliseconds since 1970: later than all earlier letters of the node.
    pub ms: u64,
    /// How many leading bits of an IPv6 address identify a source there.
    pub ipv6_prefix: u8,
    /// The covered part.
    pub part: Part,
    /// The words.
    pub words: Vec<Word>,
}

/// Seals and opens letters about known sources.
#[derive(Clone, Debug)]
pub struct SourceSeal(Envelope);

impl SourceSeal {
    /// Returns the seal of the fleet with that name.
    #[must_use]
    pub fn new(fleet: &Name, keys: &Keys) -> Self {
        Self(Envelope {
            keys: keys.clone(),
            purpose: b"limiter fleet, known sources",
            alike: Sha256::digest(fleet.as_str()),
            most_bytes: 1 + SEAL + REST + MOST_OF_SLOT * LONGEST_WORD,
        })
    }

    /// Writes a letter of at most [`MOST_OF_SLOT`] words.
    #[must_use]
    pub fn letter(&self, letter: &SourceLetter) -> Vec<u8> {
        debug_assert!(letter.words.len() <= MOST_OF_SLOT, "{}", letter.words.len());
        self.0.close(&written(letter))
    }

    /// Reads a letter. Its words are not [checked](Word::check) yet.
    ///
    /// # Errors
    ///
    /// The letter is not from a node of the fleet.
    pub fn open(&self, letter: &[u8]) -> Result<SourceLetter, OpenError> {
        let letter = read::<SourceLetter>(self.0.open(letter)?)?;
        if letter.words.len() > MOST_OF_SLOT {
            return Err(OpenError::Notes);
        }
        Ok(letter)
    }

    /// Returns whether an [opened](Self::open) letter is sealed with the current key.
    #[must_use]
    pub fn is_current(&self, letter: &[u8]) -> bool {
        self.0.is_current(letter)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        Key,
        sources::{Source, SourceMap},
    };

    fn seal(fleet: &str, key: u8) -> SourceSeal {
        let keys = Keys {
            current: Key::new(&[key; 32]).unwrap(),
            other: None,
        };
        SourceSeal::new(&fleet.try_into().unwrap(), &keys)
    }

    fn longest() -> SourceLetter {
        let word = Word {
            source: Source::V6([255; 8]),
            since_s: u64::MAX >> 24,
            until_s: u64::MAX >> 24,
            is_fresh: true,
        };
        SourceLetter {
            node: "n".repeat(63).as_str().try_into().unwrap(),
            ms: u64::MAX,
            ipv6_prefix: 64,
            part: Part::Slot(255),
            words: vec![word; MOST_OF_SLOT],
        }
    }

    #[test]
    fn only_nodes_of_the_fleet_are_heard() {
        let letter = longest();
        let sealed = seal("edge", 1).letter(&letter);
        assert_eq!(seal("edge", 1).open(&sealed), Ok(letter));
        assert!(seal("edge", 1).is_current(&sealed));
        for (fleet, key) in [("edge", 2), ("core", 1)] {
            assert_eq!(seal(fleet, key).open(&sealed), Err(OpenError::Seal));
        }
        let mut long = longest();
        long.words.push(long.words[0]);
        let body = written(&long);
        assert_eq!(
            seal("edge", 1).open(&seal("edge", 1).0.close(&body)),
            Err(OpenError::Notes)
        );
    }

    proptest! {
        /// Any bytes that a key holder seals are a letter or an error, never a panic.
        #[test]
        fn any_sealed_bytes_are_a_letter_or_none(body in prop::collection::vec(any::<u8>(), 0..300)) {
            let seal = seal("edge", 1);
            let mut map = SourceMap::new("a".try_into().unwrap(), 64);
            if let Ok(letter) = seal.open(&seal.0.close(&body)) {
                let _ = map.hear(letter, 1_700_000_000_000);
            }
        }
    }
}
