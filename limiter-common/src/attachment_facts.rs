//! Facts about the interfaces of a program. They may change while it is attached, so the verifier must not treat them as
//! constants.

use crate::{counters::MAX_INTERFACES, packet::superframe::SuperframeFields};

/// The facts about one interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct AttachmentFacts {
    /// How superframes are counted.
    pub superframes: SuperframeFields,
    /// The daemon's number for the interface, or [`NO_INTERFACE`].
    pub interface: u32,
    /// The Ethernet addresses that the interface answers for, each in the lower 48 bits of a number; 0: unused entry.
    pub answered: [u64; MOST_ANSWERED],
}

/// The most Ethernet addresses that an interface answers for: its own, and addresses of devices above it.
pub const MOST_ANSWERED: usize = 4;

/// In place of an interface's number: the program is attached to no interface of that slot. No counter has this number.
pub const NO_INTERFACE: u32 = MAX_INTERFACES;

/// The slots of a program for facts about its interfaces, a power of two. More than interfaces, since the slot follows
/// from the kernel's index and interfaces of one slot need programs of their own.
pub const SLOTS: usize = 128;

/// The facts about all interfaces of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct ProgramFacts {
    /// By [`slot`]. First, since the map begins at a page: a slot is a cache line then.
    pub slots: [AttachmentFacts; SLOTS],
    /// Always 0.
    pub zero: u64,
}

/// The slot of the interface with the kernel's `index`.
#[must_use]
#[inline(always)]
pub const fn slot(index: u32) -> usize {
    index as usize % SLOTS
}

/// Packs an Ethernet address into the lower 48 bits of a number.
#[must_use]
#[inline(always)]
pub const fn ethernet_number(address: [u8; 6]) -> u64 {
    let [first, second, third, fourth, fifth, sixth] = address;
    u64::from_be_bytes([0, 0, first, second, third, fourth, fifth, sixth])
}

impl AttachmentFacts {
    /// The facts about the interface with the number `interface`, without superframes and answers.
    #[must_use]
    pub const fn of(interface: u32) -> Self {
        Self {
            superframes: SuperframeFields::NONE,
            interface,
            answered: [0; MOST_ANSWERED],
        }
    }
}

impl ProgramFacts {
    /// The same facts in each slot.
    #[must_use]
    pub const fn all(facts: AttachmentFacts) -> Self {
        Self {
            slots: [facts; SLOTS],
            zero: 0,
        }
    }
}
