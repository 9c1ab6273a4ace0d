//! A packet as limits and sieves see it.

use crate::{owner::OwnerFields, packet::Asked, packet::Facts, policy::Class};

/// A packet to decide on: its facts, the class of its source, and the time.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Packet {
    /// The facts of its headers.
    pub facts: Facts,
    /// The class of its source.
    pub class: Class,
    /// When it arrived, in nanoseconds.
    pub now: u64,
    /// The policy's words on what it asks for; only if limits count it by that.
    pub asked: Asked,
}

impl Packet {
    /// Returns what may name the owners of the packet's buckets, if it came in on the interface of
    /// that number.
    #[inline(always)]
    pub(crate) const fn owner_fields<'a>(&'a self, interface: &'a u32) -> OwnerFields<'a> {
        OwnerFields {
            facts: &self.facts,
            subscriber: &self.class.subscriber,
            asked: &self.asked,
            interface,
        }
    }
}
