//! HTTP/2 with prior knowledge (RFC 9113, 3.3): the first request's header block.

use super::hpack;
use crate::{
    name::Name,
    outcome::{NoName, Stop},
};

/// The first bytes from a client.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The length of a frame's header.
const HEADER: usize = 9;

/// The longest frame that a client may send, until the server allows more.
const LONGEST: usize = 1 << 14;

/// The types of frames.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const CONTINUATION: u8 = 9;

/// Flags of `HEADERS` and `CONTINUATION`.
const END_HEADERS: u8 = 0x04;
const PADDED: u8 = 0x08;
const PRIORITY: u8 = 0x20;

/// Whether bytes begin with the client's preface, or with its first part: the method `PRI` is
/// reserved for the preface.
pub(crate) fn begins(bytes: &[u8]) -> bool {
    let length = bytes.len().min(PREFACE.len());
    bytes[..length] == PREFACE[..length]
}

/// Finds the name in bytes that [begin](begins) with the preface.
pub(crate) fn read(bytes: &[u8]) -> Result<Name, Stop> {
    let malformed = Stop::No(NoName::Malformed);
    let mut rest = bytes.get(PREFACE.len()..).ok_or(Stop::More)?;
    let mut is_first = true;
    // The header block, once it has begun, with its stream.
    let mut block: Option<(u32, Vec<u8>)> = None;
    loop {
        let (header, after) = rest.split_first_chunk::<HEADER>().ok_or(Stop::More)?;
        let [high, middle, low, kind, flags, stream @ ..] = *header;
        let length = u32::from_be_bytes([0, high, middle, low]) as usize;
        let stream = u32::from_be_bytes(stream) & 0x7fff_ffff;
        if length > LONGEST || (is_first && kind != SETTINGS) {
            return Err(malformed);
        }
        is_first = false;
        let (payload, after) = after.split_at_checked(length).ok_or(Stop::More)?;
        rest = after;
        match (&mut block, kind) {
            (None, HEADERS) if stream % 2 == 1 => {
                let fragment = without_padding(payload, flags).ok_or(malformed)?;
                block = Some((stream, fragment.to_vec()));
            }
            (Some((begun, block)), CONTINUATION) if *begun == stream => {
                block.extend_from_slice(payload);
            }
            (None, DATA | HEADERS | CONTINUATION) | (Some(_), _) => return Err(malformed),
            (None, _) => continue,
        }
        if let Some((_, block)) = &block
            && flags & END_HEADERS != 0
        {
            let authority = hpack::authority(block).ok_or(malformed)?;
            let authority = authority.ok_or(Stop::No(NoName::Unnamed))?;
            return Ok(Name::of_authority(&authority)?);
        }
    }
}

/// The fragment of the header block in a `HEADERS` frame.
fn without_padding(payload: &[u8], flags: u8) -> Option<&[u8]> {
    let (padding, payload) = if flags & PADDED == 0 {
        (0, payload)
    } else {
        let (padding, payload) = payload.split_first()?;
        (usize::from(*padding), payload)
    };
    let payload = if flags & PRIORITY == 0 {
        payload
    } else {
        payload.get(5..)?
    };
    payload.get(..payload.len().checked_sub(padding)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).unwrap();
        [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
    }

    /// The request of RFC 7541, C.4.1: `http://www.example.com/`, with the Huffman code.
    const BLOCK: &[u8] = &[
        0x82, 0x86, 0x84, 0x41, 0x8c, 0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90,
        0xf4, 0xff,
    ];

    fn connection(frames: &[Vec<u8>]) -> Vec<u8> {
        let settings = frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100]);
        [PREFACE, &settings, &frames.concat()].concat()
    }

    #[track_caller]
    fn assert_named(frames: &[Vec<u8>]) {
        let bytes = connection(frames);
        assert!(begins(&bytes));
        assert_eq!(read(&bytes).unwrap().as_str(), "www.example.com");
        for end in 0..bytes.len() {
            assert!(begins(&bytes[..end]));
            assert_eq!(read(&bytes[..end]), Err(Stop::More), "{end}");
        }
    }

    #[test]
    fn the_authority_names_the_server() {
        let window = frame(8, 0, 0, &[0, 0, 1, 0]);
        assert_named(&[window.clone(), frame(HEADERS, END_HEADERS, 1, BLOCK)]);
        let padded = [&[3, 0, 0, 0, 0, 16], BLOCK, &[0; 3]].concat();
        let flags = END_HEADERS | PADDED | PRIORITY;
        assert_named(&[frame(HEADERS, flags, 1, &padded)]);
        let (one, others) = BLOCK.split_at(6);
        let (two, three) = others.split_at(1);
        assert_named(&[
            frame(HEADERS, 0, 1, one),
            frame(CONTINUATION, 0, 1, two),
            frame(CONTINUATION, END_HEADERS, 1, three),
        ]);
    }

    #[test]
    fn frames_at_a_wrong_position_are_refused() {
        let headers = frame(HEADERS, END_HEADERS, 1, BLOCK);
        let refused = [
            [PREFACE, &headers].concat(),
            connection(&[frame(CONTINUATION, END_HEADERS, 1, BLOCK)]),
            connection(&[frame(HEADERS, 0, 1, BLOCK), headers.clone()]),
            connection(&[frame(HEADERS, 0, 1, BLOCK), frame(CONTINUATION, 4, 3, &[])]),
            connection(&[frame(HEADERS, END_HEADERS, 2, BLOCK)]),
            connection(&[frame(HEADERS, END_HEADERS | PADDED, 1, &[9, 0x82])]),
            connection(&[frame(DATA, 0, 1, b"x")]),
            [PREFACE, &[1, 0, 0, 4, 0, 0, 0, 0, 0]].concat(),
        ];
        for bytes in refused {
            assert_eq!(
                read(&bytes),
                Err(Stop::No(NoName::Malformed)),
                "{bytes:02x?}"
            );
        }
        let unnamed = connection(&[frame(HEADERS, END_HEADERS, 1, &[0x82, 0x86, 0x84])]);
        assert_eq!(read(&unnamed), Err(Stop::No(NoName::Unnamed)));
    }
}
