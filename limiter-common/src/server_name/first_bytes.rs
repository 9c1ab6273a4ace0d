//! The first bytes of connections, and whether a segment repeats them unchanged.

use super::MOST_FIRST_BYTES;
#[cfg(not(target_arch = "bpf"))]
use crate::packet::Frame;

/// The number of words.
const WORDS: usize = MOST_FIRST_BYTES as usize / 8;

const ALL: u64 = u64::MAX;

/// First bytes of a connection, as little-endian words; unknown bytes are zero. It consists of plain numbers.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FirstBytes([u64; WORDS]);

/// The part of a segment that overlaps the first bytes of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// The position of its first byte among the connection's.
    pub position: u32,
    /// The number of bytes before it in the segment's payload.
    pub skipped: u32,
    /// The number of its bytes: at least one, and none behind the connection's last first byte.
    pub length: u32,
}

/// The result of comparing a segment with the bytes read at its positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Comparison {
    /// The same bytes.
    Same = 1,
    /// Other bytes: no honest sender changes them.
    Other = 2,
    /// The bytes read are unknown here.
    Unknown = 3,
}

impl Overlap {
    /// Returns the part of a segment that overlaps the first `most` bytes of a connection, or `None` if it has
    /// none of them. The connection's bytes start at the sequence number `first`; the segment's payload has
    /// `length` bytes from `sequence` on.
    #[must_use]
    #[inline(always)]
    pub const fn new((first, most): (u32, u32), sequence: u32, length: u32) -> Option<Self> {
        let start = sequence.wrapping_sub(first);
        let before = first.wrapping_sub(sequence);
        let (position, skipped) = if start < most {
            (start, 0)
        } else if before < length {
            // The network stack drops bytes before the first byte.
            (0, before)
        } else {
            return None;
        };
        let (left, room) = (length.wrapping_sub(skipped), most.wrapping_sub(position));
        let length = if left < room { left } else { room };
        if length == 0 {
            return None;
        }
        Some(Self {
            position,
            skipped,
            length,
        })
    }
}

impl FirstBytes {
    /// No bytes.
    pub const NONE: Self = Self([0; WORDS]);

    /// Makes the first bytes of a connection that begins with `bytes`.
    #[must_use]
    #[cfg(not(target_arch = "bpf"))]
    pub fn new(bytes: &[u8]) -> Self {
        let mut first = Self::NONE;
        first.write(0, bytes);
        first
    }

    /// Puts bytes at their positions from `position` on. Bytes behind the last position are left out.
    #[cfg(not(target_arch = "bpf"))]
    pub fn write(&mut self, position: u32, bytes: &[u8]) {
        for (byte, position) in bytes.iter().zip(position..MOST_FIRST_BYTES) {
            self.put(position, (*byte).into(), 1);
        }
    }

    /// Returns the bytes of a part of a segment with its payload at an offset in a frame.
    #[must_use]
    #[cfg(not(target_arch = "bpf"))]
    pub fn of_frame<F: Frame>(frame: &F, payload: usize, part: &Overlap) -> Self {
        let mut first = Self::NONE;
        let start = payload + part.skipped as usize;
        for (position, offset) in (part.position..part.position + part.length).zip(start..) {
            let [byte] = frame.load(offset).unwrap_or_default();
            first.write(position, &[byte]);
        }
        first
    }

    /// Puts the lowest `length` bytes of a number, at most eight, at their positions from `position` on, the
    /// lowest byte first.
    #[inline(always)]
    pub const fn put(&mut self, position: u32, bytes: u64, length: u32) {
        let mask = ALL >> (64 - 8 * length);
        let (at, shift) = (position as usize / 8, 8 * (position % 8));
        let word = at % WORDS;
        self.0[word] = self.0[word] & !(mask << shift) | (bytes & mask) << shift;
        if shift > 0 {
            let word = (at + 1) % WORDS;
            let right = 64 - shift;
            self.0[word] = self.0[word] & !(mask >> right) | (bytes & mask) >> right;
        }
    }

    /// Whether a segment has these bytes in its part `part`. `copy` has the segment's bytes at their
    /// positions, and any bytes elsewhere.
    #[must_use]
    #[inline(always)]
    pub fn agrees(&self, copy: &mut Self, part: &Overlap) -> bool {
        let last_position = part.position.wrapping_add(part.length).wrapping_sub(1);
        let (first, last) = (part.position / 8, last_position / 8);
        copy.take_outside(self, first, ALL << (8 * (part.position % 8)));
        copy.take_outside(self, last, ALL >> (8 * (7 - last_position % 8)));
        let mut difference = 0;
        // A constant bound, for the kernel's verifier.
        for number in 0..MOST_FIRST_BYTES / 8 {
            let index = first.wrapping_add(number);
            if index > last {
                break;
            }
            let at = index as usize % WORDS;
            difference |= self.0[at] ^ copy.0[at];
        }
        difference == 0
    }

    /// Takes the bits of a word outside the mask from `other`.
    #[inline(always)]
    const fn take_outside(&mut self, other: &Self, index: u32, mask: u64) {
        let at = index as usize % WORDS;
        self.0[at] = self.0[at] & mask | other.0[at] & !mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_put_at_their_positions_and_nowhere_else() {
        for position in 0..20_u8 {
            for length in 1..=7 {
                let mut expected = [0xaa; 40];
                let mut first = FirstBytes::new(&expected);
                let bytes = u64::from_le_bytes([1, 2, 3, 4, 5, 6, 7, 8]);
                first.put(position.into(), bytes, length);
                for (byte, number) in expected[position.into()..].iter_mut().zip(1..) {
                    if number <= length {
                        *byte = u8::try_from(number).unwrap();
                    }
                }
                assert_eq!(
                    first.0,
                    FirstBytes::new(&expected).0,
                    "{length} from {position}"
                );
            }
        }
    }

    #[test]
    fn every_byte_of_the_part_matters_and_no_other() {
        const MOST: usize = MOST_FIRST_BYTES as usize;
        let mut bytes = [0x55; MOST];
        for (byte, position) in bytes.iter_mut().zip(0_u8..=255) {
            *byte = position;
        }
        let read = FirstBytes::new(&bytes);
        for part in [
            0..1_usize,
            0..8,
            3..5,
            5..17,
            7..24,
            1000..2460,
            0..MOST,
            MOST - 1..MOST,
        ] {
            let [position, end] = [part.start, part.end].map(|one| u32::try_from(one).unwrap());
            let overlap = Overlap {
                position,
                skipped: 0,
                length: end - position,
            };
            for changed in part.start.saturating_sub(9)..(part.end + 9).min(MOST) {
                let mut other = bytes;
                other[changed] ^= 0x80;
                let agrees = read.agrees(&mut FirstBytes::new(&other), &overlap);
                assert_eq!(agrees, !part.contains(&changed), "{changed} of {part:?}");
            }
        }
    }
}
