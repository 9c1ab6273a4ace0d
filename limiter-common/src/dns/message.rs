//! The memory that holds a DNS message.

use crate::name_hash::Sums;
#[cfg(not(target_arch = "bpf"))]
use crate::packet::{Datagram, Frame};

/// The length of a message's header.
pub const HEADER: usize = 12;

/// The longest name, with the empty label at its end.
pub(super) const LONGEST_NAME: usize = 255;

/// A type and a class.
pub(super) const TYPE_AND_CLASS: usize = 4;

/// The most bytes of a message that are read.
pub const MOST_BYTES: usize = HEADER + LONGEST_NAME + TYPE_AND_CLASS;

/// A power of two above every offset: the verifier needs such a bound.
const BOUND: usize = 512;

/// The number of recorded labels: a power of two above the most labels of a name.
const LABELS: usize = 128;

/// The number of recorded sums: a power of two above the most words of a name.
const SUMS: usize = 64;

/// An impossible number of labels.
const NOT_HASHED: [u64; 2] = [u64::MAX, 0];

/// The start of a DNS message, and the offsets of its first name's labels.
///
/// It consists of plain numbers, because the kernel's program has it in a map.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct Message {
    /// Room for a whole word behind each offset.
    bytes: [u8; BOUND + 8],
    labels: [u16; LABELS],
    /// The sums over as many words as the index.
    sums: [Sums; SUMS],
    /// The number of the message's bytes.
    length: u64,
    /// The last end of the name that was looked up: its number of labels, and its hash.
    hashed: [u64; 2],
}

const _: () = assert!(MOST_BYTES < BOUND, "every offset is below the bound");

impl Message {
    /// No message.
    pub const EMPTY: Self = Self {
        bytes: [0; BOUND + 8],
        labels: [0; LABELS],
        sums: [[0; 2]; SUMS],
        length: 0,
        hashed: NOT_HASHED,
    };

    /// Returns the memory for a message. The caller must write its first `length` bytes, at most
    /// [`MOST_BYTES`].
    #[inline(always)]
    pub const fn begin(&mut self, length: u64) -> &mut [u8; BOUND + 8] {
        self.length = length;
        self.hashed = NOT_HASHED;
        &mut self.bytes
    }

    /// Reads the message of a frame's datagram; returns false if there is none, or not all of it.
    #[cfg(not(target_arch = "bpf"))]
    pub fn read<F: Frame>(&mut self, frame: &F, datagram: Datagram) -> bool {
        if datagram.length == 0 {
            return false;
        }
        let start = datagram.start as usize;
        let length = (datagram.length as usize).min(MOST_BYTES);
        for (to, at) in self.begin(length as u64).iter_mut().zip(0..length) {
            // A frame in a capture may be cut.
            let Some([byte]) = frame.load(start + at) else {
                return false;
            };
            *to = byte;
        }
        true
    }

    #[inline(always)]
    pub(super) const fn length(&self) -> u64 {
        self.length
    }

    /// Returns the bytes between two offsets, or `None` if the first is behind the second.
    #[cfg(not(target_arch = "bpf"))]
    pub(super) fn bytes(&self, between: core::ops::Range<usize>) -> Option<&[u8]> {
        self.bytes.get(between)
    }

    #[inline(always)]
    pub(super) const fn byte(&self, at: usize) -> u8 {
        self.bytes[at % BOUND]
    }

    /// Returns the 16-bit number at an offset.
    #[inline(always)]
    pub(super) const fn u16(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.byte(at), self.byte(at + 1)])
    }

    /// Returns a pointer to the byte at an offset. The message has room for eight bytes from there on.
    #[must_use]
    #[inline(always)]
    pub const fn pointer_at(&self, at: u32) -> *const u8 {
        self.bytes.as_ptr().wrapping_add(at as usize % BOUND)
    }

    /// Returns the eight bytes at an offset as a little-endian number.
    #[cfg(not(target_arch = "bpf"))]
    pub(super) fn le_u64(&self, at: usize) -> u64 {
        let at = at % BOUND;
        match self.bytes.get(at..).and_then(|bytes| bytes.first_chunk()) {
            Some(word) => u64::from_le_bytes(*word),
            None => 0,
        }
    }

    /// Records the offset of the label with that number, counted from the left.
    #[inline(always)]
    pub(super) const fn record_label(&mut self, number: usize, at: u16) {
        self.labels[number % LABELS] = at;
    }

    /// Records the sums over that many words.
    #[inline(always)]
    pub(super) const fn record_sums(&mut self, words: u32, sums: Sums) {
        self.sums[words as usize % SUMS] = sums;
    }

    #[inline(always)]
    pub(super) const fn sums(&self, words: u32) -> Sums {
        self.sums[words as usize % SUMS]
    }

    #[inline(always)]
    pub(super) const fn record_hash(&mut self, hashed: [u64; 2]) {
        self.hashed = hashed;
    }

    /// Returns the number of labels, and the hash, of the end that was recorded last.
    #[inline(always)]
    pub(super) const fn hashed(&self) -> [u64; 2] {
        self.hashed
    }

    /// Returns the offset of the label with that number.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the remainder is a small number"
    )]
    pub(super) const fn label(&self, number: u64) -> u32 {
        self.labels[number as usize % LABELS] as u32
    }
}
