//! The keys of a client's Initial packets (RFC 9001, 5.2 to 5.4; RFC 9369, 3.3).
//!
//! RustCrypto does the cryptography. The keys protect no secret: every observer of the packet can derive them.

use aes::{Aes128, cipher::BlockEncrypt as _};
use aes_gcm::{AeadInPlace as _, Aes128Gcm, KeyInit as _};
use hkdf::Hkdf;
use sha2::Sha256;

use super::version::Version;

/// The length of the authentication tag behind an encrypted payload.
pub(super) const TAG: usize = 16;

/// The offset of the sample for header protection, from the packet number on.
const SAMPLE_AT: usize = 4;
const SAMPLE: usize = 16;

/// The keys that open a client's Initial packets. Kept as bytes: expanded keys take ten times as much memory.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) key: [u8; 16],
    pub(super) iv: [u8; 12],
    pub(super) header: [u8; 16],
}

impl Keys {
    /// Derives the keys from the destination connection ID of the client's first packet.
    pub(super) fn of_client(version: Version, connection: &[u8]) -> Self {
        let initial = Hkdf::<Sha256>::new(Some(&version.salt()), connection);
        let secret: [u8; 32] = expand(&initial, "client in");
        let client = Hkdf::from_prk(&secret).expect("a secret of the hash's length is long enough");
        let [key, iv, header] = version.labels();
        Self {
            key: expand(&client, key),
            iv: expand(&client, iv),
            header: expand(&client, header),
        }
    }

    /// Opens a packet with its number at `number_at`, and returns its payload; `None`: the keys do not fit.
    pub(super) fn open(&self, packet: &[u8], number_at: usize) -> Option<Vec<u8>> {
        let sample = packet
            .get(number_at + SAMPLE_AT..)?
            .first_chunk::<SAMPLE>()?;
        let [first_mask, number_mask @ ..] = self.mask(*sample);
        let first = packet[0] ^ first_mask & 0x0f;
        let number_length = usize::from(first & 3) + 1;
        let payload_at = number_at + number_length;
        let mut packet = packet.to_vec();
        packet[0] = first;
        for (byte, mask) in packet[number_at..payload_at].iter_mut().zip(number_mask) {
            *byte ^= mask;
        }
        // The truncated number is taken as the whole one: a real client sends too few packets before its hello for
        // truncation to matter.
        let nonce = self.nonce(&packet[number_at..payload_at]);
        let (header, payload) = packet.split_at_mut(payload_at);
        let (payload, tag) = payload.split_at_mut_checked(payload.len().checked_sub(TAG)?)?;
        let cipher = Aes128Gcm::new(&self.key.into());
        let tag = (&*tag).into();
        cipher
            .decrypt_in_place_detached(&nonce.into(), header, payload, tag)
            .ok()?;
        Some(payload.to_vec())
    }

    /// The mask over the first byte and the packet number.
    pub(super) fn mask(&self, sample: [u8; SAMPLE]) -> [u8; 5] {
        let mut block = sample.into();
        Aes128::new(&self.header.into()).encrypt_block(&mut block);
        [block[0], block[1], block[2], block[3], block[4]]
    }

    /// The nonce of a packet with a number of up to four bytes.
    pub(super) fn nonce(&self, number: &[u8]) -> [u8; 12] {
        let mut nonce = self.iv;
        for (byte, number) in nonce.iter_mut().rev().zip(number.iter().rev()) {
            *byte ^= number;
        }
        nonce
    }
}

/// HKDF-Expand-Label of TLS 1.3 without a context (RFC 8446, 7.1).
fn expand<const N: usize>(secret: &Hkdf<Sha256>, label: &str) -> [u8; N] {
    let length = u8::try_from(N).expect("no key is that long");
    let label_length = u8::try_from(PREFIX.len() + label.len()).expect("no label is that long");
    let info = [&[0, length, label_length], PREFIX, label.as_bytes(), &[0]].concat();
    let mut key = [0; N];
    secret
        .expand(&info, &mut key)
        .expect("a key is shorter than 255 hashes");
    key
}

const PREFIX: &[u8] = b"tls13 ";

#[cfg(test)]
mod tests {
    use super::*;

    const CONNECTION: [u8; 8] = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];

    fn hex(bytes: &[u8]) -> String {
        format!("{bytes:02x?}").replace(['[', ']', ',', ' '], "")
    }

    /// RFC 9001, A.1 and A.2.
    #[test]
    fn the_keys_of_version_1_are_those_of_the_standard() {
        let keys = Keys::of_client(Version::One, &CONNECTION);
        assert_eq!(hex(&keys.key), "1f369613dd76d5467730efcbe3b1a22d");
        assert_eq!(hex(&keys.iv), "fa044b2f42a3fd3b46fb255c");
        assert_eq!(hex(&keys.header), "9f50449e04a0e810283a1e9933adedd2");
        let sample = 0xd1b1_c98d_d768_9fb8_ec11_d242_b123_dc9b_u128.to_be_bytes();
        assert_eq!(hex(&keys.mask(sample)), "437b9aec36");
    }

    /// RFC 9369, A.1 and A.2.
    #[test]
    fn the_keys_of_version_2_are_those_of_the_standard() {
        let keys = Keys::of_client(Version::Two, &CONNECTION);
        assert_eq!(hex(&keys.key), "8b1a0bc121284290a29e0971b5cd045d");
        assert_eq!(hex(&keys.iv), "91f73e2351d8fa91660e909f");
        assert_eq!(hex(&keys.header), "45b95e15235d6f45a6b19cbcb0294ba9");
        let sample = 0xffe6_7b6a_bcdb_4298_b485_dd04_de80_6071_u128.to_be_bytes();
        assert_eq!(hex(&keys.mask(sample)), "94a0c95e80");
    }
}
