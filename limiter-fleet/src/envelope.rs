//! Authenticated bytes: the version of the format in one byte, the MAC, and the body.

use std::fmt;

use hmac::digest::{CtOutput, Output};
use serde::{Serialize, de::DeserializeOwned};
use sha2::Sha256;

use crate::Key;

/// The version of the format.
pub(crate) const VERSION: u8 = 1;

/// The length of a MAC, in bytes.
pub(crate) const MAC_LENGTH: usize = 32;

/// The keys of a node. To change the key of a running fleet, all nodes first accept the new key too, then
/// authenticate with it, then forget the old one.
#[derive(Clone, Debug)]
pub struct Keys {
    /// The key that authenticates messages.
    pub current: Key,
    /// A second key that verifies messages, while the fleet's key changes.
    pub other: Option<Key>,
}

/// Why bytes are not a message of the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OpenError {
    /// They are too long for one.
    TooLong,
    /// They have another version of the format.
    Version,
    /// No known key has authenticated them, or the sending node has other members or terms.
    Mac,
    /// The MAC is right, but the body is malformed.
    Body,
}

impl fmt::Display for OpenError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::TooLong => "it is too long",
            Self::Version => "another version of limiter wrote it",
            Self::Mac => {
                "its MAC is wrong: its node has another key, other nodes in its list, or another \
                 name of the fleet"
            }
            Self::Body => "it cannot be read",
        })
    }
}

impl std::error::Error for OpenError {}

/// Authenticates and verifies messages for one purpose.
#[derive(Clone, Debug)]
pub(crate) struct Envelope {
    pub(crate) keys: Keys,
    /// Text that no other use of the key begins with.
    pub(crate) purpose: &'static [u8],
    /// The digest of the configuration that all nodes must share.
    pub(crate) alike: Output<Sha256>,
    /// The most bytes of a message: longer ones are refused unread.
    pub(crate) most_bytes: usize,
}

impl Envelope {
    pub(crate) fn close(&self, body: &[u8]) -> Vec<u8> {
        let mut message = vec![VERSION];
        message.extend(self.of(&self.keys.current, body).into_bytes());
        message.extend(body);
        message
    }

    /// Returns the authenticated body.
    pub(crate) fn open<'l>(&self, message: &'l [u8]) -> Result<&'l [u8], OpenError> {
        if message.len() > self.most_bytes {
            return Err(OpenError::TooLong);
        }
        let (version, rest) = message.split_first().ok_or(OpenError::Mac)?;
        if *version != VERSION {
            return Err(OpenError::Version);
        }
        let (mac, body) = parts(rest).ok_or(OpenError::Mac)?;
        let mut keys = [&self.keys.current].into_iter().chain(&self.keys.other);
        if keys.any(|key| self.of(key, body) == mac) {
            Ok(body)
        } else {
            Err(OpenError::Mac)
        }
    }

    /// Returns whether a verified message is authenticated with the current key.
    pub(crate) fn is_current(&self, message: &[u8]) -> bool {
        // Most of the time there is no other key.
        self.keys.other.is_none()
            || message
                .split_first()
                .and_then(|(_, rest)| parts(rest))
                .is_some_and(|(mac, body)| self.of(&self.keys.current, body) == mac)
    }

    pub(crate) fn of(&self, key: &Key, body: &[u8]) -> CtOutput<hmac::Hmac<Sha256>> {
        key.mac(&[self.purpose, &self.alike, body])
    }
}

/// Splits the bytes after the version into MAC and body.
fn parts(rest: &[u8]) -> Option<(CtOutput<hmac::Hmac<Sha256>>, &[u8])> {
    let (mac, body) = rest.split_first_chunk::<MAC_LENGTH>()?;
    Some((CtOutput::new((*mac).into()), body))
}

/// Writes a body.
pub(crate) fn written(what: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(what).expect("memory takes all that is written")
}

/// Reads a body to its last byte.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, OpenError> {
    match postcard::take_from_bytes(body) {
        Ok((read, [])) => Ok(read),
        _ => Err(OpenError::Body),
    }
}
