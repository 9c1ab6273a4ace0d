//! The compiled policy, in which the datapath finds the limits of a packet.
//!
//! Each limit has an index, and a set of limits is the bits of one word. Each property of a packet
//! (its source, destination, protocol, ports, flags) is looked up by itself and gives the set of
//! limits that it allows. The intersection of all sets is the limits that count the packet
//! (Lakshman and Stiliadis, "High-Speed Policy-based Packet Forwarding Using Efficient
//! Multi-dimensional Range Matching", 1998). Each property costs one look-up, whatever the number
//! of limits, overrides and ports.

mod child;
mod class;
mod entry;
mod in_force;
mod lookup;
mod matching;
mod name_slot;
mod named;
mod otherwise;
mod shape;

#[cfg(not(target_arch = "bpf"))]
pub use self::named::with_overrides;
pub use self::{
    child::Child,
    class::Class,
    entry::LimitEntry,
    in_force::{interval_in_force, share_in_force},
    lookup::{MOST_STEPS, Node, Stretch, descend, search},
    matching::matching,
    name_slot::NameSlot,
    named::rate_index,
    otherwise::{MOST_OTHERWISE, Otherwise, without_otherwise},
    shape::{Dimension, Masks, Shape},
};
pub(crate) use self::{
    matching::{set_of_number, set_of_value},
    named::{note_overrides, with_rates},
};
use crate::{
    address::{Address, Family},
    limit::LimitId,
    name_hash::NameKeys,
    owner::BucketKey,
    sieve::{Sieve, SieveUse},
    standing::Reserves,
    strategy::{
        Parameters,
        gcra::{CurrentRate, Parts, ShareWord},
    },
};

/// The class of IPv4 addresses that no prefix of the policy contains.
pub const DEFAULT_CLASS_V4: u32 = 0;

/// The class of IPv6 addresses that no prefix of the policy contains.
pub const DEFAULT_CLASS_V6: u32 = 1;

/// The compiled policy's tables.
pub trait Tables {
    /// Returns what the other tables contain.
    fn shape(&self) -> &Shape;
    /// Returns the limit at an index.
    fn limit(&self, limit_index: u32) -> Option<&LimitEntry>;
    /// Returns a node, which divides some values.
    fn node(&self, index: u32) -> Option<&Node>;
    /// Returns a stretch of those values, with the starts of ranges in it.
    fn stretch(&self, index: u32) -> Option<&Stretch>;
    /// Returns what is known of the values between two starts.
    fn child(&self, index: u32) -> Option<&Child>;
    /// Returns a class.
    fn class(&self, index: u32) -> Option<&Class>;
    /// Returns a bucket's parameters: those of the limits' defaults are first, by limit index, and
    /// those of overrides follow.
    fn rate(&self, index: u32) -> Option<&Parameters>;
    /// Returns what is reserved of a bucket, by the index of its [`Self::rate`]; `None`: nothing,
    /// for all limits.
    fn reserves(&self, index: u32) -> Option<&Reserves>;
    /// Returns the rate in force of the limit with that interned id, whose rate is automatic. This and
    /// shares are all of a policy that changes while it is in force.
    fn current_rate(&self, limit: LimitId) -> CurrentRate;
    /// Returns the share that owners without one of their own have of the limit with that interned id,
    /// whose budget a fleet has in common.
    fn share(&self, limit: LimitId) -> ShareWord;
    /// Returns an owner's own share of such a limit at the time `now_ns`, and counts what a packet wants of
    /// it, in tokens; `None`: it has none.
    fn owner_share(&self, bucket: &BucketKey, wanted: u64, now_ns: u64) -> Option<Parts>;
    /// Notes that such a limit refused a packet of an owner without a share.
    fn note_wanting(&self, bucket: &BucketKey);
    /// Returns a set of limits, by its index from [`Masks`].
    fn mask(&self, index: u32) -> Option<&u64>;
    /// Returns the secrets of the hash of names.
    fn name_keys(&self) -> &NameKeys;
    /// Returns the slot of the table of names at an index.
    fn name(&self, index: u32) -> Option<&NameSlot>;
    /// Returns a sieve.
    fn sieve(&self, index: u32) -> Option<&Sieve>;
    /// Returns a use of a sieve.
    fn sieve_use(&self, index: u32) -> Option<&SieveUse>;

    /// Calls [`descend`]. In the kernel program it is a separate function, which the verifier
    /// walks once and not once for each path that leads to it.
    #[inline(always)]
    fn descend(&self, node: u32, high: u64, low: u64) -> u32
    where
        Self: Sized,
    {
        descend(self, node, high, low)
    }

    /// Calls [`without_otherwise`]. In the kernel program it is a separate function, as the one above.
    #[inline(always)]
    fn without_otherwise(&self, matched: u64) -> u64 {
        without_otherwise(&self.shape().otherwise, matched)
    }

    /// Returns the value, and makes the kernel's verifier forget what it knows of it.
    ///
    /// The verifier follows each known value through the program: bits gathered in a loop over the
    /// limits would make it walk every subset of them. Natively there is nothing to do.
    #[must_use]
    #[inline(always)]
    fn opaque(&self, value: u64) -> u64 {
        value
    }
}

/// Returns the class of a source address; `None` if the tables have a hole, which they do not.
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

/// Returns the parameters of the limit with that index for addresses of `class`, to which it
/// applies.
#[inline(always)]
pub fn parameters_of<'t, T: Tables>(
    tables: &'t T,
    class: &Class,
    limit_index: u32,
) -> Option<&'t Parameters> {
    tables.rate(class.rate_index(limit_index))
}
