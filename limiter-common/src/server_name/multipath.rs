//! Multipath TCP: its option gives the position of a segment's bytes, perhaps none, or in another connection.
//! So the segments of one connection do not show the bytes that the server reads.

/// The end of a header's options, padding, and the option of multipath TCP (RFC 8684).
const OPTIONS_END: u8 = 0;
const PADDING: u8 = 1;
const MULTIPATH: u8 = 30;

/// The options of a segment, with room behind the longest possible: a power of two, for the verifier.
pub type TcpOptions = [u8; 64];

/// The most bytes of options.
const MOST_OPTIONS: usize = 40;

/// Whether the first `length` bytes of a segment's options have an option of multipath TCP; they are parsed as
/// in the network stack. `opaque` returns its argument, and hides its value from the kernel's verifier.
#[must_use]
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "it is a small number")]
pub fn has_multipath(options: &TcpOptions, length: u32, opaque: impl Fn(u64) -> u64) -> bool {
    let byte = |at: u32| options[at as usize % size_of::<TcpOptions>()];
    let mut at = 0;
    // The verifier needs a constant bound.
    for _ in 0..MOST_OPTIONS {
        // Opaque: the verifier would walk the rest once for each number.
        at = opaque(u64::from(at)) as u32;
        if at >= length {
            break;
        }
        let kind = byte(at);
        if kind == MULTIPATH {
            return true;
        }
        let size = if kind == PADDING {
            1
        } else {
            u32::from(byte(at + 1))
        };
        if kind == OPTIONS_END || size == 0 {
            break;
        }
        at += size;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_is_found_behind_others_and_in_none() {
        for (options, expected) in [
            (&b"\x1e\x04\x20\x01"[..], true),
            (b"\x01\x01\x08\x0a\x1e\x1e\x1e\x1e\x1e\x1e\x1e\x1e", false),
            (b"\x01\x01\x08\x0aabcdefgh\x1e\x04\x20\x05", true),
            (b"\x01\x01\x01\x1e", true),
            // Behind the end of the options, and in an option with a wrong length.
            (b"\x01\0\x1e\x04", false),
            (b"\x05\0\x1e\x04", false),
            (b"\x05\xff\x1e\x04", false),
            (b"", false),
            (&[1; MOST_OPTIONS], false),
        ] {
            let mut room = [0x1e; size_of::<TcpOptions>()];
            room[..options.len()].copy_from_slice(options);
            let length = u32::try_from(options.len()).unwrap();
            let found = has_multipath(&room, length, |at| at);
            assert_eq!(found, expected, "{options:02x?}");
        }
    }
}
