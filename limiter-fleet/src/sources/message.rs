//! Messages about known sources, and their authentication.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::entry::{Slot, SourceEntry};
use crate::{
    Name,
    envelope::{Envelope, Keys, MAC_LENGTH, OpenError, read, written},
};

/// The most entries in a news message.
pub const MOST_NEWS: usize = 256;

/// The most entries in a slot message.
pub const MOST_OF_SLOT: usize = 1_024;

/// The most bytes of an entry: its source and two times of 40 bits, with room to spare.
const LONGEST_ENTRY: usize = 32;

/// The most bytes of the rest of a message.
const REST: usize = 128;

/// The part of a node's sources that a message covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// The sources with a changed entry.
    News,
    /// All sources of a slot.
    Slot(Slot),
}

/// A node's entries about sources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceMessage {
    /// The node.
    pub node: Name,
    /// When it was sent, in milliseconds since 1970: later than all earlier messages of the node.
    pub ms: u64,
    /// How many leading bits of an IPv6 address identify a source there.
    pub ipv6_prefix: u8,
    /// The covered part.
    pub part: Part,
    /// The entries.
    pub entries: Vec<SourceEntry>,
}

/// Authenticates and verifies messages about known sources.
#[derive(Clone, Debug)]
pub struct SourceAuthenticator(Envelope);

impl SourceAuthenticator {
    /// Returns the authenticator of the fleet with that name.
    #[must_use]
    pub fn new(fleet: &Name, keys: &Keys) -> Self {
        Self(Envelope {
            keys: keys.clone(),
            purpose: b"limiter fleet, known sources",
            alike: Sha256::digest(fleet.as_str()),
            most_bytes: 1 + MAC_LENGTH + REST + MOST_OF_SLOT * LONGEST_ENTRY,
        })
    }

    /// Writes a message of at most [`MOST_OF_SLOT`] entries.
    #[must_use]
    pub fn message(&self, message: &SourceMessage) -> Vec<u8> {
        debug_assert!(
            message.entries.len() <= MOST_OF_SLOT,
            "{}",
            message.entries.len()
        );
        self.0.close(&written(message))
    }

    /// Reads a message. Its entries are not [checked](SourceEntry::check) yet.
    ///
    /// # Errors
    ///
    /// The message is not from a node of the fleet.
    pub fn open(&self, message: &[u8]) -> Result<SourceMessage, OpenError> {
        let message = read::<SourceMessage>(self.0.open(message)?)?;
        if message.entries.len() > MOST_OF_SLOT {
            return Err(OpenError::Body);
        }
        Ok(message)
    }

    /// Returns whether an [opened](Self::open) message is authenticated with the current key.
    #[must_use]
    pub fn is_current(&self, message: &[u8]) -> bool {
        self.0.is_current(message)
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

    fn authenticator(fleet: &str, key: u8) -> SourceAuthenticator {
        let keys = Keys {
            current: Key::new(&[key; 32]).unwrap(),
            other: None,
        };
        SourceAuthenticator::new(&fleet.try_into().unwrap(), &keys)
    }

    fn longest() -> SourceMessage {
        let entry = SourceEntry {
            source: Source::V6([255; 8]),
            since_s: u64::MAX >> 24,
            until_s: u64::MAX >> 24,
            is_fresh: true,
        };
        SourceMessage {
            node: "n".repeat(63).as_str().try_into().unwrap(),
            ms: u64::MAX,
            ipv6_prefix: 64,
            part: Part::Slot(255),
            entries: vec![entry; MOST_OF_SLOT],
        }
    }

    #[test]
    fn only_nodes_of_the_fleet_are_accepted() {
        let message = longest();
        let authenticated = authenticator("edge", 1).message(&message);
        assert_eq!(authenticator("edge", 1).open(&authenticated), Ok(message));
        assert!(authenticator("edge", 1).is_current(&authenticated));
        for (fleet, key) in [("edge", 2), ("core", 1)] {
            assert_eq!(
                authenticator(fleet, key).open(&authenticated),
                Err(OpenError::Mac)
            );
        }
        let mut long = longest();
        long.entries.push(long.entries[0]);
        let body = written(&long);
        assert_eq!(
            authenticator("edge", 1).open(&authenticator("edge", 1).0.close(&body)),
            Err(OpenError::Body)
        );
    }

    proptest! {
        /// Any bytes that a key holder authenticates are a message or an error, never a panic.
        #[test]
        fn any_authenticated_bytes_are_a_message_or_none(body in prop::collection::vec(any::<u8>(), 0..300)) {
            let authenticator = authenticator("edge", 1);
            let mut map = SourceMap::new("a".try_into().unwrap(), 64);
            if let Ok(message) = authenticator.open(&authenticator.0.close(&body)) {
                let _ = map.receive(message, 1_700_000_000_000);
            }
        }
    }
}
