//! Sealed bytes: the version of the format in one byte, the seal, and the sealed body.

use std::fmt;

use hmac::digest::{CtOutput, Output};
use serde::{Serialize, de::DeserializeOwned};
use sha2::Sha256;

use crate::Key;

/// The version of the format.
pub(crate) const VERSION: u8 = 1;

/// The length of a seal, in bytes.
pub(crate) const SEAL: usize = 32;

/// The keys of a node. To change the key of a running fleet, all nodes first accept the new key too, then
/// seal with it, then forget the old one.
#[derive(Clone, Debug)]
pub struct Keys {
    /// The key that seals letters.
    pub current: Key,
    /// A second key that opens letters, while the fleet's key changes.
    pub other: Option<Key>,
}

/// Why bytes are not a letter of the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OpenError {
    /// They are too long for one.
    TooLong,
    /// They have another version of the format.
    Version,
    /// No known key has sealed them, or the sealing node has other members or terms.
    Seal,
    /// The seal is right, but the body is malformed.
    Notes,
}

impl fmt::Display for OpenError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::TooLong => "it is too long",
            Self::Version => "another version of limiter wrote it",
            Self::Seal => {
                "its seal is wrong: its node has another key, other nodes in its list, or another \
                 name of the fleet"
            }
            Self::Notes => "it cannot be read",
        })
    }
}

impl std::error::Error for OpenError {}

/// Seals and opens letters for one purpose.
#[derive(Clone, Debug)]
pub(crate) struct Envelope {
    pub(crate) keys: Keys,
    /// Text that no other use of the key begins with.
    pub(crate) purpose: &'static [u8],
    /// The digest of the configuration that all nodes must share.
    pub(crate) alike: Output<Sha256>,
    /// The most bytes of a letter: longer ones are refused unread.
    pub(crate) most_bytes: usize,
}

impl Envelope {
    pub(crate) fn close(&self, body: &[u8]) -> Vec<u8> {
        let mut letter = vec![VERSION];
        letter.extend(self.of(&self.keys.current, body).into_bytes());
        letter.extend(body);
        letter
    }

    /// Returns the sealed body.
    pub(crate) fn open<'l>(&self, letter: &'l [u8]) -> Result<&'l [u8], OpenError> {
        if letter.len() > self.most_bytes {
            return Err(OpenError::TooLong);
        }
        let (version, rest) = letter.split_first().ok_or(OpenError::Seal)?;
        if *version != VERSION {
            return Err(OpenError::Version);
        }
        let (seal, body) = parts(rest).ok_or(OpenError::Seal)?;
        let mut keys = [&self.keys.current].into_iter().chain(&self.keys.other);
        if keys.any(|key| self.of(key, body) == seal) {
            Ok(body)
        } else {
            Err(OpenError::Seal)
        }
    }

    /// Returns whether an opened letter is sealed with the current key.
    pub(crate) fn is_current(&self, letter: &[u8]) -> bool {
        // Most of the time there is no other key.
        self.keys.other.is_none()
            || letter
                .split_first()
                .and_then(|(_, rest)| parts(rest))
                .is_some_and(|(seal, body)| self.of(&self.keys.current, body) == seal)
    }

    pub(crate) fn of(&self, key: &Key, body: &[u8]) -> CtOutput<hmac::Hmac<Sha256>> {
        key.seal(&[self.purpose, &self.alike, body])
    }
}

/// Splits the bytes after the version into seal and body.
fn parts(rest: &[u8]) -> Option<(CtOutput<hmac::Hmac<Sha256>>, &[u8])> {
    let (seal, body) = rest.split_first_chunk::<SEAL>()?;
    Some((CtOutput::new((*seal).into()), body))
}

/// Writes a body.
pub(crate) fn written(what: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(what).expect("memory takes all that is said")
}

/// Reads a body to its last byte.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, OpenError> {
    match postcard::take_from_bytes(body) {
        Ok((read, [])) => Ok(read),
        _ => Err(OpenError::Notes),
    }
}
