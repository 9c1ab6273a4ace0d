//! The secret by which all nodes of a fleet give a name the same number.

use crate::{Keys, Name};

/// Text that no other use of the key begins with.
const PURPOSE: &[u8] = b"limiter fleet, numbers of names";

impl Keys {
    /// Returns the secret by which the nodes of a fleet number the names that packets ask for: the first 16
    /// bytes, as two little-endian words, of HMAC-SHA-256 with the current key. It does not reveal the key.
    #[must_use]
    pub fn names_secret(&self, fleet: &Name) -> [u64; 2] {
        let mac = self.current.mac(&[PURPOSE, fleet.as_str().as_bytes()]);
        let bytes: [u8; 32] = mac.into_bytes().into();
        let (words, _) = bytes.as_chunks();
        [words[0], words[1]].map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;

    #[test]
    fn it_is_that_of_the_current_key_and_of_the_fleet() {
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
