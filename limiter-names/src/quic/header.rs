//! Long packet headers (RFC 9000, 17.2). A client sends no other headers before the server has
//! answered.

use super::version::{Kind, Version};
use crate::outcome::NoName;

/// The minimum size of a datagram with an Initial packet: clients must pad it, and servers drop
/// shorter ones.
pub(super) const SHORTEST: usize = 1200;

/// The longest connection ID of versions 1 and 2.
const LONGEST_ID: usize = 20;

/// The part of a header that is not protected.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) version: Version,
    pub(super) kind: Kind,
    /// The destination connection ID.
    pub(super) connection: Connection,
    /// The offset of the packet number.
    pub(super) number_at: usize,
    /// The offset of the packet's end.
    pub(super) end: usize,
}

/// A connection ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Connection {
    bytes: [u8; LONGEST_ID],
    length: u8,
}

impl Connection {
    fn new(id: &[u8]) -> Option<Self> {
        let mut bytes = [0; LONGEST_ID];
        bytes.get_mut(..id.len())?.copy_from_slice(id);
        Some(Self {
            bytes,
            length: u8::try_from(id.len()).ok()?,
        })
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl Header {
    /// Reads the header of the packet at the beginning of some bytes.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, NoName> {
        let mut reader = Reader(bytes);
        let first = reader.byte().ok_or(NoName::Foreign)?;
        // The form bit is 1 for long headers, and the next bit is always 1.
        if first & 0xc0 != 0xc0 {
            return Err(NoName::Foreign);
        }
        let version = reader.take(4).and_then(|version| version.first_chunk());
        let version = u32::from_be_bytes(*version.ok_or(NoName::Foreign)?);
        let Some(version) = Version::of_number(version) else {
            // Checks the rest of the header's form, so that other protocols are not taken for QUIC.
            return Err(match (reader.id(), reader.id()) {
                (Some(_), Some(_)) if version != 0 && bytes.len() >= SHORTEST => NoName::Version,
                _ => NoName::Foreign,
            });
        };
        Self::read_rest(bytes.len(), first, version, reader).ok_or(NoName::Malformed)
    }

    fn read_rest(
        length: usize,
        first: u8,
        version: Version,
        mut reader: Reader<'_>,
    ) -> Option<Self> {
        let connection = Connection::new(reader.id()?)?;
        Connection::new(reader.id()?)?;
        let kind = version.kind(first >> 4 & 3)?;
        if kind == Kind::Initial {
            let token = reader.integer()?;
            reader.take(token)?;
        }
        let rest = reader.integer()?;
        let number_at = length - reader.0.len();
        reader.take(rest)?;
        Some(Self {
            version,
            kind,
            connection,
            number_at,
            end: number_at + rest,
        })
    }
}

/// Reads fields from bytes.
pub(super) struct Reader<'b>(pub(super) &'b [u8]);

impl<'b> Reader<'b> {
    pub(super) fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    pub(super) fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// Reads a connection ID: a byte with its length, and that many bytes.
    fn id(&mut self) -> Option<&'b [u8]> {
        let length = self.byte()?;
        self.take(length.into())
    }

    /// Reads an integer of one to eight bytes (RFC 9000, 16).
    pub(super) fn integer(&mut self) -> Option<usize> {
        let first = self.byte()?;
        let more = self.take((1 << (first >> 6)) - 1)?;
        let value = more.iter().fold(u64::from(first & 0x3f), |value, byte| {
            value << 8 | u64::from(*byte)
        });
        usize::try_from(value).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_one_to_eight_bytes() {
        // RFC 9000, A.1.
        let cases: [(&[u8], usize); 5] = [
            (
                &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c],
                151_288_809_941_952_652,
            ),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ];
        for (bytes, value) in cases {
            let mut reader = Reader(bytes);
            assert_eq!(reader.integer(), Some(value));
            assert!(reader.0.is_empty());
            assert_eq!(Reader(&bytes[..bytes.len() - 1]).integer(), None);
        }
    }
}
