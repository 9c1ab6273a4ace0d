//! Writes a source into a frame.

use crate::{
    client::{CLIENTS, FIRST_PORT},
    layout::Source,
};

const ETHERNET: usize = 14;
const V4_CHECKSUM: usize = ETHERNET + 10;
const V4_SOURCE: usize = ETHERNET + 12;
const V4_END: usize = ETHERNET + 20;
const V6_SOURCE: usize = ETHERNET + 8;
const V6_END: usize = ETHERNET + 40;
const UDP_SOURCE_PORT_V4: usize = V4_END;
const UDP_END_V4: usize = V4_END + 8;

/// The bytes of an untagged Ethernet frame, by the addresses that XDP gives.
#[derive(Clone, Copy)]
pub struct Frame {
    start: usize,
    end: usize,
}

impl Frame {
    /// Takes the bytes from `start` up to `end`, exclusive.
    ///
    /// # Safety
    ///
    /// While the value is in use, the bytes are readable, writable and not accessed otherwise, and
    /// `start` is even, as for every frame that a driver receives.
    #[must_use]
    #[inline(always)]
    pub const unsafe fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// Replaces the source address, and updates IPv4's header checksum. A frame that is too short
    /// stays as it is.
    #[inline(always)]
    pub fn set_source(&self, source: Source) {
        match source {
            Source::V4(address) => self.set_source_v4(address),
            Source::V6(high, low) => {
                if self.start + V6_END <= self.end {
                    self.write_long(V6_SOURCE, high);
                    self.write_long(V6_SOURCE + 8, low);
                }
            }
        }
    }

    /// Replaces the UDP source port of an IPv4 packet without options.
    #[inline(always)]
    pub fn set_source_port(&self, port: u16) {
        if self.start + UDP_END_V4 <= self.end {
            self.write(UDP_SOURCE_PORT_V4, port);
        }
    }

    /// Returns whether the UDP source port of an IPv4 packet without options is a client's.
    #[must_use]
    #[inline(always)]
    pub fn is_of_client(&self) -> bool {
        self.start + UDP_END_V4 <= self.end
            && u32::from(self.read(UDP_SOURCE_PORT_V4).wrapping_sub(FIRST_PORT)) < CLIENTS
    }

    #[inline(always)]
    fn set_source_v4(&self, address: u32) {
        if self.start + V4_END > self.end {
            return;
        }
        let (high, low) = halves(address);
        // RFC 1624, equation 3.
        let sum = u64::from(!self.read(V4_CHECKSUM))
            + u64::from(!self.read(V4_SOURCE))
            + u64::from(!self.read(V4_SOURCE + 2))
            + u64::from(high)
            + u64::from(low);
        self.write(V4_CHECKSUM, !fold(sum));
        self.write(V4_SOURCE, high);
        self.write(V4_SOURCE + 2, low);
    }

    #[inline(always)]
    pub(crate) const fn has(&self, bytes: usize) -> bool {
        self.start + bytes <= self.end
    }

    /// Writes 64 bits, under the conditions of [`Frame::write`].
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the halves of a word")]
    pub(crate) fn write_long(&self, offset: usize, value: u64) {
        self.write_int(offset, (value >> 32) as u32);
        self.write_int(offset + 4, value as u32);
    }

    /// Writes 32 bits, under the conditions of [`Frame::write`].
    #[inline(always)]
    pub(crate) fn write_int(&self, offset: usize, value: u32) {
        let (first, second) = halves(value);
        self.write(offset, first);
        self.write(offset + 2, second);
    }

    /// Reads 16 bits, to which the headers are aligned: the BPF compiler splits larger or possibly
    /// unaligned reads into bytes.
    ///
    /// The caller has checked that the frame is long enough.
    #[inline(always)]
    pub(crate) fn read(&self, offset: usize) -> u16 {
        // SAFETY: the bytes are the frame's, readable and aligned by `new`'s promise and the
        // even offset.
        u16::from_be(unsafe { ((self.start + offset) as *const u16).read() })
    }

    /// Writes 16 bits, under the same conditions.
    #[inline(always)]
    pub(crate) fn write(&self, offset: usize, value: u16) {
        // SAFETY: as in `read`; they are writable too.
        unsafe { ((self.start + offset) as *mut u16).write(value.to_be()) }
    }
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the halves of a word")]
const fn halves(word: u32) -> (u16, u16) {
    ((word >> 16) as u16, word as u16)
}

/// Folds a sum of 16-bit words into one word, in one's complement.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the carries are folded in")]
pub(crate) const fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(2))]
    struct Aligned<const N: usize>([u8; N]);

    /// Returns the sum of a header's words, which is 0xffff in a valid one.
    fn sum(header: &[u8]) -> u16 {
        let words = header
            .chunks(2)
            .map(|word| u16::from_be_bytes([word[0], word[1]]));
        fold(words.map(u64::from).sum())
    }

    #[test]
    fn the_checksum_follows_the_source() {
        let mut aligned = Aligned([0; 64]);
        let bytes = &mut aligned.0;
        bytes[14] = 0x45;
        bytes[16..18].copy_from_slice(&50_u16.to_be_bytes());
        bytes[22] = 64;
        bytes[23] = 17;
        bytes[26..34].copy_from_slice(&[10, 0, 0, 2, 10, 0, 0, 1]);
        let checksum = !sum(&bytes[14..34]);
        bytes[24..26].copy_from_slice(&checksum.to_be_bytes());
        let start = bytes.as_mut_ptr().addr();
        for address in [0, 1, 0xffff_ffff, 0x1234_5678, 0xffff_0000] {
            // SAFETY: the bytes are ours and outlive the value.
            unsafe { Frame::new(start, start + 64) }.set_source(Source::V4(address));
            assert_eq!(bytes[26..30], address.to_be_bytes());
            assert_eq!(sum(&bytes[14..34]), 0xffff, "{address:x}");
        }
    }

    #[test]
    fn clients_are_known_by_their_ports() {
        let mut aligned = Aligned([0; 42]);
        let start = aligned.0.as_mut_ptr().addr();
        // SAFETY: the bytes are ours and outlive the value.
        let frame = unsafe { Frame::new(start, start + aligned.0.len()) };
        for (port, expected) in [(9, false), (20_000, true), (20_015, true), (20_016, false)] {
            frame.set_source_port(port);
            assert_eq!(frame.is_of_client(), expected, "{port}");
        }
    }

    #[test]
    fn short_frames_stay_as_they_are() {
        let mut aligned = Aligned([7; 33]);
        let bytes = &mut aligned.0;
        let start = bytes.as_mut_ptr().addr();
        // SAFETY: the bytes are ours and outlive the value.
        let frame = unsafe { Frame::new(start, start + bytes.len()) };
        frame.set_source(Source::V4(1));
        frame.set_source(Source::V6(1, 1));
        frame.set_source_port(FIRST_PORT);
        assert!(!frame.is_of_client());
        assert_eq!(*bytes, [7; 33]);
    }
}
