//! A packet and the classification of its source.

use crate::{
    key::KeyFields,
    packet::Facts,
    packet::NameMatch,
    policy::{Class, Tables, rate_index},
    strategy::Parameters,
};

/// A packet to decide on: its facts, the class of its source, and the time.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ClassifiedPacket {
    /// The facts of its headers.
    pub facts: Facts,
    /// The class of its source.
    pub class: Class,
    /// Its arrival time, in nanoseconds.
    pub now: u64,
    /// The daemon's number for the interface that it came in on.
    pub interface: u64,
    /// The policy's classification of the packet's question or server name; set only if limits count by it.
    pub name_match: NameMatch,
}

impl ClassifiedPacket {
    /// The index of the parameters that a limit applies to the packet. The limit must count the packet.
    #[must_use]
    #[inline(always)]
    pub fn rate_index<T: Tables>(&self, tables: &T, limit_index: u32) -> u32 {
        rate_index(tables, &self.class, &self.name_match, limit_index)
    }

    /// The parameters at [`Self::rate_index`].
    #[inline(always)]
    pub(crate) fn parameters<'t, T: Tables>(
        &self,
        tables: &'t T,
        limit_index: u32,
    ) -> Option<&'t Parameters> {
        tables.rate(self.rate_index(tables, limit_index))
    }

    /// Collects the fields that can name a key.
    #[inline(always)]
    pub(crate) const fn key_fields(&self) -> KeyFields<'_> {
        KeyFields {
            facts: &self.facts,
            subscriber: &self.class.subscriber,
            name_match: &self.name_match,
            interface: &self.interface,
        }
    }
}
