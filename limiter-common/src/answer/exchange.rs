//! The memory in which an answer replaces its packet.

use crate::address::Family;
#[cfg(not(target_arch = "bpf"))]
use crate::packet::{self, Frame};

/// The longest packet that gets an answer, in bytes from the IP header on.
pub const ROOM: usize = 2048;

/// The offset of the transport header, in every family: so all later offsets are constants, and 32-bit
/// words are aligned. Before it is room for an ICMP error's own headers.
pub(super) const TRANSPORT: usize = 88;

/// Returns an offset as the loops' number type.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "it is an offset in the exchange, which has some 2000 bytes"
)]
pub(super) const fn offset(at: usize) -> u32 {
    at as u32
}

/// The lengths of the IP headers; packets with options or extension headers get no answer.
pub(super) const IPV4_LENGTH: u32 = 20;
pub(super) const IPV6_LENGTH: u32 = 40;
pub(super) const IPV4: usize = IPV4_LENGTH as usize;
pub(super) const IPV6: usize = IPV6_LENGTH as usize;

/// The length of the two Ethernet addresses.
const ADDRESSES: usize = 12;

/// Offsets of headers are below this power of two; the verifier needs such a bound.
pub(super) const HEADERS: usize = 128;

const SIZE: usize = HEADERS + ROOM;

/// A packet, to be replaced by its answer.
///
/// It consists of plain numbers, because the kernel's program has it in a map.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(4))]
pub struct Exchange {
    bytes: [u8; SIZE],
    /// The frame's Ethernet addresses: the destination's, then the source's.
    ethernet: [u8; ADDRESSES],
    /// The [`Family::number`] of the packet.
    family: u32,
    /// The length of the Ethernet header, with tags.
    link_length: u32,
    /// The length of the packet in the frame, with any bytes behind its end.
    packet_length: u32,
    /// The answer's start and length.
    answer_start: u32,
    answer_length: u32,
}

const _: () = assert!(
    size_of::<Exchange>() == SIZE + ADDRESSES + 5 * 4,
    "no padding"
);

impl Exchange {
    /// An exchange without a packet.
    pub const EMPTY: Self = Self {
        bytes: [0; SIZE],
        ethernet: [0; ADDRESSES],
        family: 0,
        link_length: 0,
        packet_length: 0,
        answer_start: 0,
        answer_length: 0,
    };

    /// Returns the offset of a packet's start in [`Self::bytes_mut`].
    #[must_use]
    #[inline(always)]
    pub const fn start_of(family: Family) -> usize {
        match family {
            Family::V4 => TRANSPORT - IPV4,
            Family::V6 => TRANSPORT - IPV6,
        }
    }

    /// Whether a packet of that length has room.
    #[must_use]
    #[inline(always)]
    pub const fn has_room(packet_length: usize) -> bool {
        packet_length > 0 && packet_length <= ROOM
    }

    /// Records the facts of the frame. The caller must also write its Ethernet addresses and its packet.
    #[inline(always)]
    pub const fn begin(&mut self, family: Family, link_length: u32, packet_length: u32) {
        self.family = family.number();
        self.link_length = link_length;
        self.packet_length = packet_length;
    }

    /// The memory of the Ethernet addresses.
    #[inline(always)]
    pub const fn ethernet_mut(&mut self) -> &mut [u8; ADDRESSES] {
        &mut self.ethernet
    }

    /// The memory of the packet, which starts at [`Self::start_of`] its family.
    #[inline(always)]
    pub const fn bytes_mut(&mut self) -> &mut [u8; SIZE] {
        &mut self.bytes
    }

    /// The memory of the packet, or of the answer once it is written.
    #[must_use]
    #[inline(always)]
    pub const fn bytes(&self) -> &[u8; SIZE] {
        &self.bytes
    }

    /// The length of the Ethernet header, with tags.
    #[must_use]
    #[inline(always)]
    pub const fn link_length(&self) -> u32 {
        self.link_length
    }

    /// The answer's offset in [`Self::bytes_mut`]: early enough that [`ROOM`] bytes follow.
    #[must_use]
    #[inline(always)]
    pub const fn answer_start(&self) -> usize {
        self.answer_start as usize % HEADERS
    }

    /// Reads a frame; returns false if it has no IP packet, one too long, or not all of its bytes.
    #[cfg(not(target_arch = "bpf"))]
    pub fn read<F: Frame>(&mut self, frame: &F) -> bool {
        let Some((family, link_length)) = packet::network(frame) else {
            return false;
        };
        let length = frame.length() - link_length;
        let (Ok(link), Ok(packet)) = (u32::try_from(link_length), u32::try_from(length)) else {
            return false;
        };
        if !Self::has_room(length) {
            return false;
        }
        let ethernet = self.ethernet.iter_mut().zip(0..);
        let room = self.bytes.iter_mut().skip(Self::start_of(family));
        for (to, at) in ethernet.chain(room.zip(link_length..frame.length())) {
            // A frame in a capture may be cut.
            let Some([byte]) = frame.load(at) else {
                return false;
            };
            *to = byte;
        }
        self.begin(family, link, packet);
        true
    }

    /// Returns the answer from its IP header on; empty without an answer.
    #[must_use]
    #[cfg(not(target_arch = "bpf"))]
    pub fn answer(&self) -> &[u8] {
        let start = self.answer_start();
        let end = start + self.answer_length as usize;
        self.bytes.get(start..end).unwrap_or(&[])
    }

    /// The Ethernet addresses of the frame, or of the answer once it is written.
    #[must_use]
    #[inline(always)]
    pub const fn ethernet(&self) -> &[u8; ADDRESSES] {
        &self.ethernet
    }

    /// Turns the Ethernet addresses into the answer's.
    #[inline(always)]
    pub(super) fn swap_ethernet(&mut self) {
        for at in 0..ADDRESSES / 2 {
            self.ethernet.swap(at, at + ADDRESSES / 2);
        }
    }

    #[inline(always)]
    pub(super) const fn family(&self) -> Family {
        Family::of_index(self.family as usize)
    }

    /// The length of the packet in the frame, with any bytes behind its end.
    #[inline(always)]
    pub(super) const fn packet_length(&self) -> u32 {
        self.packet_length
    }

    #[inline(always)]
    pub(super) const fn answer_length(&self) -> u32 {
        self.answer_length
    }

    #[inline(always)]
    pub(super) const fn erase_answer(&mut self) {
        self.set_answer(0, 0);
    }

    #[inline(always)]
    pub(super) const fn set_answer(&mut self, start: usize, length: u32) {
        self.answer_start = offset(start);
        self.answer_length = length;
    }

    /// Returns the aligned word that contains the bytes from `4 * index` on; 0 beyond the end.
    #[inline(always)]
    pub(super) fn word(&self, index: usize) -> u32 {
        match self.bytes.as_chunks::<4>().0.get(index) {
            Some(word) => u32::from_be_bytes(*word),
            None => 0,
        }
    }

    /// Returns the byte at an offset; 0 beyond the end.
    #[inline(always)]
    pub(super) fn byte(&self, at: usize) -> u8 {
        match self.bytes.get(at) {
            Some(byte) => *byte,
            None => 0,
        }
    }

    /// Returns the 16-bit number at an offset; 0 beyond the end.
    #[inline(always)]
    pub(super) fn u16(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.byte(at), self.byte(at + 1)])
    }

    /// Returns the 32-bit number at an offset; 0 beyond the end.
    #[inline(always)]
    pub(super) fn u32(&self, at: usize) -> u32 {
        u32::from(self.u16(at)) << 16 | u32::from(self.u16(at + 2))
    }

    /// Returns the eight bytes at an offset as a little-endian number; bytes beyond the end are 0.
    #[inline(always)]
    pub(super) fn le_u64(&self, at: usize) -> u64 {
        (u64::from(self.u32(at)) << 32 | u64::from(self.u32(at + 4))).swap_bytes()
    }

    /// Sets the byte at an offset, if it exists.
    #[inline(always)]
    pub(super) fn set_byte(&mut self, at: usize, value: u8) {
        if let Some(byte) = self.bytes.get_mut(at) {
            *byte = value;
        }
    }

    /// Sets the 16-bit number at an offset.
    #[inline(always)]
    pub(super) fn set_u16(&mut self, at: usize, value: u16) {
        let [high, low] = value.to_be_bytes();
        self.set_byte(at, high);
        self.set_byte(at + 1, low);
    }

    /// Sets the 32-bit number at an offset.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the two halves of the number"
    )]
    pub(super) fn set_u32(&mut self, at: usize, value: u32) {
        self.set_u16(at, (value >> 16) as u16);
        self.set_u16(at + 2, value as u16);
    }
}
