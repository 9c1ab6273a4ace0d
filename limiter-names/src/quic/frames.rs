//! The frames of an Initial packet (RFC 9000, 12.4).

use super::header::Reader;
use crate::{
    outcome::{NoName, Stop},
    pieces::Pieces,
};

/// The types of frames that a client may send there.
const PADDING: usize = 0x00;
const PING: usize = 0x01;
const ACK: usize = 0x02;
const ACK_WITH_ECN: usize = 0x03;
const CRYPTO: usize = 0x06;
const CONNECTION_CLOSE: usize = 0x1c;

/// Adds the handshake bytes in a packet's frames, as far as they are among the first `most`.
pub(super) fn read(payload: &[u8], pieces: &mut Pieces, most: u16) -> Result<(), Stop> {
    let mut reader = Reader(payload);
    read_all(&mut reader, pieces, most).ok_or(Stop::No(NoName::Malformed))
}

fn read_all(reader: &mut Reader<'_>, pieces: &mut Pieces, most: u16) -> Option<()> {
    while !reader.0.is_empty() {
        match reader.integer()? {
            PADDING | PING => {}
            kind @ (ACK | ACK_WITH_ECN) => {
                // The largest number, and the delay.
                skip(reader, 2)?;
                let ranges = reader.integer()?;
                // The first range, and two numbers for each further one.
                skip(reader, ranges.checked_mul(2)?.checked_add(1)?)?;
                if kind == ACK_WITH_ECN {
                    skip(reader, 3)?;
                }
            }
            CRYPTO => {
                let offset = reader.integer()?;
                let length = reader.integer()?;
                pieces.insert(offset, reader.take(length)?, most);
            }
            // No frame follows it.
            CONNECTION_CLOSE => return Some(()),
            _ => return None,
        }
    }
    Some(())
}

fn skip(reader: &mut Reader<'_>, number: usize) -> Option<()> {
    for _ in 0..number {
        reader.integer()?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_read(payload: &[u8], expected: Option<&[u8]>) {
        let mut pieces = Pieces::default();
        let read = read(payload, &mut pieces, 64);
        assert_eq!(read.is_ok(), expected.is_some());
        if let Some(expected) = expected {
            assert_eq!(pieces.beginning(&mut Vec::new()), expected);
        }
    }

    #[test]
    fn only_crypto_frames_carry_the_handshake() {
        assert_read(
            b"\x06\x02\x02cd\x00\x00\x01\x06\x00\x02ab\x01",
            Some(b"abcd"),
        );
        assert_read(b"\x02\x05\x00\x01\x00\x00\x00\x06\x00\x01a", Some(b"a"));
        assert_read(b"\x03\x05\x00\x00\x00\x01\x02\x03\x06\x00\x01a", Some(b"a"));
        assert_read(b"\x06\x00\x01a\x1c\xff", Some(b"a"));
        assert_read(b"", Some(b""));
        // A stream's frame, and frames that are cut.
        assert_read(b"\x08\x00\x00", None);
        assert_read(b"\x06\x00\x02a", None);
        assert_read(b"\x02\x05\x00\x40", None);
        // A number of ranges that no packet has.
        assert_read(b"\x02\x05\x00\xff\xff\xff\xff\xff\xff\xff\xff\x00", None);
        // Far behind the bytes that are read.
        assert_read(b"\x06\xff\xff\xff\xff\xff\xff\xff\xff\x01a", Some(b""));
    }
}
