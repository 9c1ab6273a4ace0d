//! Sealed bytes: a byte with the version of the format, the seal, and what is sealed.

use std::fmt;

use hmac::digest::{CtOutput, Output};
use serde::{Serialize, de::DeserializeOwned};
use sha2::Sha256;

use crate::Key;

/// The version of the format.
pub(crate) const VERSION: u8 = 1;

/// The length of a seal, in bytes.
pub(crate) const SEAL: usize = 32;

/// The keys that a node knows. To change the key of a fleet that runs, have all nodes first open letters
/// with the new one, too, then seal with it, and then forget the old one.
#[derive(Clone, Debug)]
pub struct Keys {
    /// The key that letters are sealed with.
    pub current: Key,
    /// One more that seals are taken of, while the fleet's key changes.
    pub other: Option<Key>,
}

/// Bytes that are no letter of the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OpenError {
    /// They are too long for one.
    TooLong,
    /// They have another version of the format.
    Version,
    /// They are not sealed: with none of the keys, or by a node that has other names or terms.
    Seal,
    /// The seal is right, but there are no notes in it.
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

/// Seals and opens for one purpose.
#[derive(Clone, Debug)]
pub(crate) struct Envelope {
    pub(crate) keys: Keys,
    /// Text that no other use of the key begins with.
    pub(crate) purpose: &'static [u8],
    /// The digest of all that nodes must have alike.
    pub(crate) alike: Output<Sha256>,
    /// The most bytes of a letter: whatever is longer is none.
    pub(crate) most_bytes: usize,
}

impl Envelope {
    /// Seals.
    pub(crate) fn close(&self, body: &[u8]) -> Vec<u8> {
        let mut letter = vec![VERSION];
        letter.extend(self.of(&self.keys.current, body).into_bytes());
        letter.extend(body);
        letter
    }

    /// Returns what was sealed.
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

    /// Returns whether a letter that was opened is sealed with the key that letters are sealed with now.
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

/// Returns the seal and what is sealed, of what follows the version.
fn parts(rest: &[u8]) -> Option<(CtOutput<hmac::Hmac<Sha256>>, &[u8])> {
    let (seal, body) = rest.split_first_chunk::<SEAL>()?;
    Some((CtOutput::new((*seal).into()), body))
}

/// Writes what is to be sealed.
pub(crate) fn written(what: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(what).expect("memory takes all that is said")
}

/// Reads what was sealed, to its last byte.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, OpenError> {
    match postcard::take_from_bytes(body) {
        Ok((read, [])) => Ok(read),
        _ => Err(OpenError::Notes),
    }
}
