//! A packet as limits and sieves see it.

use crate::{
    owner::OwnerFields,
    packet::Asked,
    packet::Facts,
    policy::{Class, Tables, rate_index},
    strategy::Parameters,
};

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
    /// Returns the index of the parameters by which the limit with that index, which counts the packet, holds
    /// it.
    #[must_use]
    #[inline(always)]
    pub fn rate_index<T: Tables>(&self, tables: &T, limit_index: u32) -> u32 {
        rate_index(tables, &self.class, &self.asked, limit_index)
    }

    /// Returns these parameters.
    #[inline(always)]
    pub(crate) fn parameters<'t, T: Tables>(
        &self,
        tables: &'t T,
        limit_index: u32,
    ) -> Option<&'t Parameters> {
        tables.rate(self.rate_index(tables, limit_index))
    }

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
