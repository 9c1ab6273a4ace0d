//! Makes Initial packets as clients do, for tests.

use aes_gcm::{AeadInPlace as _, Aes128Gcm, KeyInit as _};

use super::{
    keys::{Keys, TAG},
    version::Version,
};

/// The parameters of an Initial packet.
#[derive(Clone, Copy, Debug)]
pub struct Initial<'a> {
    /// The version.
    pub version: Version,
    /// The connection ID from which the keys are derived.
    pub keyed_by: &'a [u8],
    /// The destination connection ID in the header.
    pub connection: &'a [u8],
    /// The token from a server's Retry.
    pub token: &'a [u8],
    /// The packet number.
    pub number: u32,
}

impl Initial<'_> {
    /// Makes a packet with these frames, padded to `length` bytes.
    ///
    /// # Panics
    ///
    /// If the packet cannot be that short, or is longer than 16383.
    #[must_use]
    pub fn sealed(&self, frames: &[u8], length: usize) -> Vec<u8> {
        let number = self.number.to_be_bytes();
        let (kind, version) = match self.version {
            Version::One => (0, 1u32),
            Version::Two => (1, 0x6b33_43cf),
        };
        let two_bytes = |value: usize| {
            (u16::try_from(value).expect("a number that fits") | 0x4000).to_be_bytes()
        };
        let mut packet = vec![0xc0 | kind << 4 | 3];
        packet.extend(version.to_be_bytes());
        packet.push(u8::try_from(self.connection.len()).expect("a number that fits"));
        packet.extend(self.connection);
        // No source connection ID.
        packet.push(0);
        match self.token.len() {
            0 => packet.push(0),
            length => packet.extend(two_bytes(length)),
        }
        packet.extend(self.token);
        let number_at = packet.len() + 2;
        packet.extend(two_bytes(length - number_at));
        packet.extend(number);
        let header = packet.clone();
        packet.extend(frames);
        assert!(packet.len() + TAG <= length, "{} bytes", packet.len());
        packet.resize(length - TAG, 0);

        let keys = Keys::of_client(self.version, self.keyed_by);
        let cipher = Aes128Gcm::new(&keys.key.into());
        let payload = &mut packet[header.len()..];
        let tag = cipher
            .encrypt_in_place_detached(&keys.nonce(&number).into(), &header, payload)
            .expect("a number that fits");
        packet.extend(tag);
        let sample = *packet[number_at + 4..]
            .first_chunk()
            .expect("a number that fits");
        let [first, others @ ..] = keys.mask(sample);
        packet[0] ^= first & 0x0f;
        for (byte, mask) in packet[number_at..].iter_mut().zip(others) {
            *byte ^= mask;
        }
        packet
    }
}

/// Makes a `CRYPTO` frame.
///
/// # Panics
///
/// If a number is above 16383.
#[must_use]
pub fn crypto(offset: usize, data: &[u8]) -> Vec<u8> {
    let two_bytes =
        |value: usize| (u16::try_from(value).expect("a number that fits") | 0x4000).to_be_bytes();
    [&[6], &two_bytes(offset)[..], &two_bytes(data.len()), data].concat()
}
