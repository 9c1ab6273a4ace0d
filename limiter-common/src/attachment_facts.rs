//! Facts that may change while a program is attached, so the verifier must not treat them as constants.

use crate::packet::superframe::SuperframeFields;

/// The facts that a program receives at its attachment, after verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct AttachmentFacts {
    /// Always 0.
    pub zero: u64,
    /// How superframes are counted.
    pub superframes: SuperframeFields,
    /// The Ethernet addresses that the interface answers for, each in the lower 48 bits of a number; 0: unused entry.
    pub answered: [u64; MOST_ANSWERED],
}

/// The most Ethernet addresses that an interface answers for: its own, and addresses of devices above it.
pub const MOST_ANSWERED: usize = 4;

/// Packs an Ethernet address into the lower 48 bits of a number.
#[must_use]
#[inline(always)]
pub const fn ethernet_number(address: [u8; 6]) -> u64 {
    let [first, second, third, fourth, fifth, sixth] = address;
    u64::from_be_bytes([0, 0, first, second, third, fourth, fifth, sixth])
}

impl AttachmentFacts {
    /// The facts of a program that is not attached.
    pub const NONE: Self = Self {
        zero: 0,
        superframes: SuperframeFields::NONE,
        answered: [0; MOST_ANSWERED],
    };
}
