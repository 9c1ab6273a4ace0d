//! The fleet's secrets.

use std::fmt;

use hmac::{Hmac, Mac as _, digest::CtOutput};
use sha2::Sha256;

use crate::Name;

/// The fewest bytes of a key: the length of its MACs.
const LEAST: usize = 32;

/// The most bytes of a key: a longer file is probably not a key.
const MOST: usize = 4096;

/// A secret of all nodes. It is never printed.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

/// Bytes, of this number, are no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyError(usize);

impl fmt::Display for KeyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(length) = self;
        if *length < LEAST {
            write!(
                formatter,
                "a fleet's key has at least {LEAST} bytes, this one {length}: make one with \
                 `openssl rand -hex 32`"
            )
        } else {
            write!(
                formatter,
                "a fleet's key has at most {MOST} bytes, this one {length}: is it the right file?"
            )
        }
    }
}

impl std::error::Error for KeyError {}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key(..)")
    }
}

impl Key {
    /// Makes a key of any bytes, such as a file without its final line break.
    ///
    /// # Errors
    ///
    /// The secret is too short or too long.
    pub fn new(secret: &[u8]) -> Result<Self, KeyError> {
        let error = KeyError(secret.len());
        if !(LEAST..=MOST).contains(&secret.len()) {
            return Err(error);
        }
        Hmac::new_from_slice(secret).map(Self).map_err(|_| error)
    }

    /// Returns the MAC of some parts: HMAC-SHA-256 (RFC 2104). Their lengths must follow from the first
    /// parts, or two lists of parts could have one MAC. MACs are compared in constant time.
    pub(crate) fn mac(&self, parts: &[&[u8]]) -> CtOutput<Hmac<Sha256>> {
        let mut mac = self.0.clone();
        for part in parts {
            mac.update(part);
        }
        mac.finalize()
    }
}

/// The keys of a node. To change the key of a running fleet, all nodes first accept the new key too, then
/// authenticate with it, then forget the old one.
#[derive(Clone, Debug)]
pub struct Keys {
    /// The key that authenticates messages.
    pub current: Key,
    /// A second key that verifies messages, while the fleet's key changes.
    pub other: Option<Key>,
}

/// Text that no other use of the key begins with.
const NAMES: &[u8] = b"limiter fleet, numbers of names";

impl Keys {
    /// Returns the secret by which the nodes of a fleet number the names that packets ask for: the first 16
    /// bytes, as two little-endian words, of HMAC-SHA-256 with the current key. It does not reveal the key.
    #[must_use]
    pub fn names_secret(&self, fleet: &Name) -> [u64; 2] {
        let mac = self.current.mac(&[NAMES, fleet.as_str().as_bytes()]);
        let bytes: [u8; 32] = mac.into_bytes().into();
        let (words, _) = bytes.as_chunks();
        [words[0], words[1]].map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_secret_of_some_length() {
        assert_eq!(Key::new(&[1; 31]).unwrap_err(), KeyError(31));
        assert_eq!(Key::new(&[1; 4097]).unwrap_err(), KeyError(4097));
        let key = Key::new(&[7; 32]).unwrap();
        assert_eq!(format!("{key:?}"), "Key(..)");
    }

    /// RFC 4231, test case 6: a key longer than a block.
    #[test]
    fn a_mac_is_an_hmac() {
        let key = Key::new(&[0xaa; 131]).unwrap();
        let parts: [&[u8]; 2] = [
            b"Test Using Larger Than Block-Size Key",
            b" - Hash Key First",
        ];
        let expected = [
            0x60, 0xe4, 0x31, 0x59, 0x1e, 0xe0, 0xb6, 0x7f, 0x0d, 0x8a, 0x26, 0xaa, 0xcb, 0xf5,
            0xb7, 0x7f, 0x8e, 0x0b, 0xc6, 0x21, 0x37, 0x28, 0xc5, 0x14, 0x05, 0x46, 0x04, 0x0f,
            0x0e, 0xe3, 0x7f, 0x54,
        ];
        assert_eq!(key.mac(&parts).into_bytes().as_slice(), expected);
    }
    #[test]
    fn names_are_numbered_by_the_current_key_and_the_fleet() {
        let key = |byte| Key::new(&[byte; 32]).unwrap();
        let secret = |current, other: Option<u8>, fleet: &str| {
            let keys = Keys {
                current: key(current),
                other: other.map(key),
            };
            keys.names_secret(&Name::try_from(fleet).unwrap())
        };
        let of_one = secret(1, None, "edge");
        assert_eq!(secret(1, Some(2), "edge"), of_one);
        // Computed by another program.
        assert_eq!(of_one, [0x1ebe_fd0c_8bd1_6763, 0xc0fa_cfc0_6812_b37a]);
        for other in [secret(2, Some(1), "edge"), secret(1, None, "core")] {
            assert!(other[0] != of_one[0] && other[1] != of_one[1]);
        }
    }
}
