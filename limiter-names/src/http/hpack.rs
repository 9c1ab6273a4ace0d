//! HPACK (RFC 7541), as far as the server's name needs it.
//!
//! Only one field of a connection's first header block is needed. The dynamic table is empty before, and the block adds
//! to it only fields that were read already, so the table is not kept. The existing decoders of whole blocks (hpack,
//! fluke-hpack, httlib-hpack) panic if a block ends inside an integer, or build a table of the Huffman code for each
//! text. Only the Huffman code itself comes from a crate.

use httlib_huffman::DecoderSpeed;

use crate::name::Name;

/// Indices in the static table (RFC 7541, appendix A).
const AUTHORITY: usize = 1;
const HOST: usize = 38;

/// The most bytes of an integer: enough for a length of 2^28.
const LONGEST_INTEGER: usize = 5;

/// The longest text that is decoded, in bytes: no name is longer.
const LONGEST_TEXT: usize = 300;

/// A text as it is sent.
#[derive(Clone, Copy)]
struct Text<'b> {
    bytes: &'b [u8],
    is_encoded: bool,
}

impl Text<'_> {
    /// Returns the decoded text; `None`: it is too long or damaged.
    fn decoded(self) -> Option<Vec<u8>> {
        if self.bytes.len() > LONGEST_TEXT {
            return None;
        }
        if !self.is_encoded {
            return Some(self.bytes.to_vec());
        }
        let mut decoded = Vec::new();
        httlib_huffman::decode(self.bytes, &mut decoded, DecoderSpeed::FourBits).ok()?;
        Some(decoded)
    }
}

/// The `:authority` of a request's header block, or else its `host`. Outer `None`: the block is damaged, or they
/// differ; inner `None`: it has neither.
#[expect(clippy::option_option, reason = "a block may be whole and lack both")]
pub(super) fn authority(mut block: &[u8]) -> Option<Option<Vec<u8>>> {
    let (mut authority, mut host) = (None, None);
    while let Some(first) = block.first() {
        // A whole field from a table, or a new size of the dynamic table.
        if first & 0x80 != 0 || first & 0xe0 == 0x20 {
            let bits = if first & 0x80 != 0 { 7 } else { 5 };
            (_, block) = integer(block, bits)?;
            continue;
        }
        let bits = if first & 0x40 != 0 { 6 } else { 4 };
        let (index, rest) = integer(block, bits)?;
        let (name, rest) = if index == 0 {
            let (name, rest) = text(rest)?;
            (name.decoded(), rest)
        } else {
            (None, rest)
        };
        let (value, rest) = text(rest)?;
        block = rest;
        let found = match (index, name.as_deref()) {
            (AUTHORITY, _) | (0, Some(b":authority")) => &mut authority,
            (HOST, _) | (0, Some(b"host")) => &mut host,
            _ => continue,
        };
        // With two of them, the server would choose.
        if found.replace(value.decoded()?).is_some() {
            return None;
        }
    }
    let name = |authority: &Vec<u8>| Name::of_authority(authority);
    if let (Some(authority), Some(host)) = (&authority, &host)
        && name(authority) != name(host)
    {
        return None;
    }
    Some(authority.or(host))
}

/// Reads an integer; its first byte has `bits` bits of it (RFC 7541, 5.1).
fn integer(bytes: &[u8], bits: u8) -> Option<(usize, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let most = (1usize << bits) - 1;
    let mut value = usize::from(*first) & most;
    if value < most {
        return Some((value, rest));
    }
    for (index, byte) in rest.iter().take(LONGEST_INTEGER - 1).enumerate() {
        value += usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((value, &rest[index + 1..]));
        }
    }
    None
}

/// Reads a text (RFC 7541, 5.2).
fn text(bytes: &[u8]) -> Option<(Text<'_>, &[u8])> {
    let is_encoded = bytes.first()? & 0x80 != 0;
    let (length, rest) = integer(bytes, 7)?;
    let (bytes, rest) = rest.split_at_checked(length)?;
    Some((Text { bytes, is_encoded }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name, empty if the block has none.
    fn read(block: &[u8]) -> Option<String> {
        let read = authority(block);
        read.map(|found| String::from_utf8(found.unwrap_or_default()).unwrap())
    }

    fn literal(first: u8, name: &[u8], value: &[u8]) -> Vec<u8> {
        let length = |text: &[u8]| u8::try_from(text.len()).unwrap();
        let mut field = vec![first];
        if first.is_multiple_of(16) {
            field.push(length(name));
            field.extend(name);
        }
        field.push(length(value));
        field.extend(value);
        field
    }

    #[test]
    fn the_name_is_found_in_each_form() {
        let example = Some("www.example.com".to_owned());
        // RFC 7541, C.3.1.
        let block = b"\x82\x86\x84\x41\x0fwww.example.com";
        assert_eq!(read(block), example);
        for first in [0x40, 0x00, 0x10] {
            let named = literal(first, b":authority", b"www.example.com");
            assert_eq!(read(&named), example);
            let named = literal(first, b"host", b"www.example.com");
            assert_eq!(read(&named), example);
            let indexed = literal(first | 1, b"", b"www.example.com");
            assert_eq!(read(&indexed), example);
        }
        // `host` is at index 38, and in four bits 15 + 23.
        assert_eq!(read(b"\x66\x03a.b"), Some("a.b".to_owned()));
        assert_eq!(read(b"\x0f\x17\x03a.b"), Some("a.b".to_owned()));
        // A new size comes first.
        assert_eq!(read(b"\x20\x3f\xe1\x1f\x41\x03a.b"), Some("a.b".to_owned()));
        let both = |host| [literal(0, b"host", host), literal(0, b":authority", b"b")].concat();
        assert_eq!(read(&both(b"B:80")), Some("b".to_owned()));
        assert_eq!(read(&both(b"a")), None);
        assert_eq!(authority(b"\x82"), Some(None));
        assert_eq!(authority(b""), Some(None));
    }

    #[test]
    fn a_damaged_block_is_refused() {
        let two = literal(0, b":authority", b"a").repeat(2);
        let blocks: [&[u8]; 9] = [
            b"\x3f",
            b"\xff",
            b"\xff\xff\xff\xff\xff\xff",
            b"\x41",
            b"\x41\x7f",
            b"\x41\x05a.b",
            b"\x40\x05a.b",
            // All ones end a text and are no letter.
            b"\x41\x84\xff\xff\xff\xff",
            &two,
        ];
        for block in blocks {
            assert_eq!(read(block), None, "{block:02x?}");
        }
    }
}
