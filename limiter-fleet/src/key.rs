//! The fleet's secret.

use std::fmt;

use hmac::{Hmac, Mac as _, digest::CtOutput};
use sha2::Sha256;

/// The fewest bytes of a key: the length of its MACs.
const LEAST: usize = 32;

/// The most bytes of a key: a longer file is probably not a key.
const MOST: usize = 4096;

/// A secret of all nodes. It is never printed.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

/// Why bytes are no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// Too few bytes, with their number.
    TooShort(usize),
    /// Too many bytes, with their number.
    TooLong(usize),
}

impl fmt::Display for KeyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort(length) => write!(
                formatter,
                "a fleet's key has at least {LEAST} bytes, this one {length}: make one with \
                 `openssl rand -hex 32`"
            ),
            Self::TooLong(length) => write!(
                formatter,
                "a fleet's key has at most {MOST} bytes, this one {length}: is it the right file?"
            ),
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
        match secret.len() {
            length if length < LEAST => Err(KeyError::TooShort(length)),
            length if length > MOST => Err(KeyError::TooLong(length)),
            length => Hmac::new_from_slice(secret)
                .map(Self)
                .map_err(|_| KeyError::TooLong(length)),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_secret_of_some_length() {
        assert_eq!(Key::new(&[1; 31]).unwrap_err(), KeyError::TooShort(31));
        assert_eq!(Key::new(&[1; 4097]).unwrap_err(), KeyError::TooLong(4097));
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
}
