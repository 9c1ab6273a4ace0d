//! The compiled policy: what the datapath reads to find the limits of a packet.
//!
//! Limits stand in slots, and a set of limits is the bits of one word. Each property of a
//! packet (its source, destination, protocol, ports, flags) is looked up by itself and gives
//! the set of limits that it leaves; what is left after all of them are the limits that count
//! the packet (Lakshman and Stiliadis, "High-Speed Policy-based Packet Forwarding Using
//! Efficient Multi-dimensional Range Matching", 1998). However many limits, overrides and
//! ports there are, each property costs one look-up.

mod class;
mod entry;
mod lookup;
mod matching;
mod shape;

pub use self::{
    class::Class,
    entry::LimitEntry,
    lookup::{MOST_STEPS, Node, Slot, Stretch, descend, search},
    matching::matching,
    shape::{Dimension, Masks, Shape},
};
use crate::{
    address::{Address, Family},
    sieve::{Sieve, SieveUse},
    strategy::Budget,
};

/// The class of IPv4 addresses that no prefix of the policy contains.
pub const DEFAULT_CLASS_V4: u32 = 0;

/// The class of IPv6 addresses that no prefix of the policy contains.
pub const DEFAULT_CLASS_V6: u32 = 1;

/// The compiled policy's tables.
pub trait Tables {
    /// What there is in the others.
    fn shape(&self) -> &Shape;
    /// The limit in a slot.
    fn limit(&self, slot: u32) -> Option<&LimitEntry>;
    /// How some values are divided.
    fn node(&self, index: u32) -> Option<&Node>;
    /// Where ranges start in a part of those values.
    fn stretch(&self, index: u32) -> Option<&Stretch>;
    /// What is known between two starts.
    fn slot(&self, index: u32) -> Option<&Slot>;
    /// A class.
    fn class(&self, index: u32) -> Option<&Class>;
    /// A bucket's parameters: those of the limits' defaults by slot, and behind them those of
    /// overrides.
    fn rate(&self, index: u32) -> Option<&Budget>;
    /// A set of limits, by the index that [`Masks`] has for it.
    fn mask(&self, index: u32) -> Option<&u64>;
    /// A sieve.
    fn sieve(&self, index: u32) -> Option<&Sieve>;
    /// A use of a sieve.
    fn sieve_use(&self, index: u32) -> Option<&SieveUse>;

    /// [`descend`]. The kernel program makes it a function of its own, which the verifier
    /// walks once and not once for each way to get here.
    #[inline(always)]
    fn descend(&self, node: u32, high: u64, low: u64) -> u32
    where
        Self: Sized,
    {
        descend(self, node, high, low)
    }

    /// The value itself, of which the kernel's verifier forgets what it knows.
    ///
    /// The verifier follows each known value through the program: bits gathered in a loop
    /// over the limits would make it walk every subset of them. Natively there is nothing
    /// to forget.
    #[must_use]
    #[inline(always)]
    fn opaque(&self, value: u64) -> u64 {
        value
    }
}

/// The class of a source address; `None` when the tables have a hole: they have none.
#[inline(always)]
pub fn classify<'t, T: Tables>(tables: &'t T, source: &Address) -> Option<&'t Class> {
    let (dimension, default) = match source.family {
        Family::V4 => (Dimension::SourceV4, DEFAULT_CLASS_V4),
        Family::V6 => (Dimension::SourceV6, DEFAULT_CLASS_V6),
    };
    let start = tables.shape().start(dimension);
    let index = if start.is_unused() {
        default
    } else {
        search(tables, start, source.high, source.low)
    };
    tables.class(index)
}

/// The parameters of the limit in `slot` for addresses of `class`, to which it applies.
#[inline(always)]
pub fn parameters<'t, T: Tables>(tables: &'t T, class: &Class, slot: u32) -> Option<&'t Budget> {
    tables.rate(class.rate_index(slot))
}
