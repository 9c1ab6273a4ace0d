//! The compiled policy: finds the limits that count a packet.
//!
//! Each limit has an index, and a set of limits is the bits of one word. Each property of a packet
//! (its source, destination, protocol, ports, flags) is looked up by itself and gives the set of
//! limits that it allows. The intersection of all sets is the limits that count the packet
//! (Lakshman and Stiliadis, "High-Speed Policy-based Packet Forwarding Using Efficient
//! Multi-dimensional Range Matching", 1998). Each property costs one look-up, independent of the
//! number of limits, overrides and ports.

mod child;
mod class;
mod entry;
mod features;
mod in_force;
mod lookup;
mod matching;
mod name_overrides;
mod name_slot;
mod otherwise;

#[cfg(not(target_arch = "bpf"))]
pub use self::name_overrides::with_overrides;
pub use self::{
    child::Child,
    class::Class,
    entry::LimitEntry,
    features::{Dimension, Features, Masks},
    in_force::{interval_in_force, share_in_force},
    lookup::{MOST_STEPS, Node, Stretch, descend, search},
    matching::matching,
    name_overrides::rate_index,
    name_slot::NameSlot,
    otherwise::{FallbackLimits, MOST_OTHERWISE, without_otherwise},
};
pub(crate) use self::{
    matching::{set_of_number, set_of_value},
    name_overrides::{record_overrides, with_rates},
};
use crate::{
    address::{Address, Family},
    key::BucketKey,
    limit::LimitId,
    name_hash::NameKeys,
    sieve::{Sieve, SieveUse},
    standing::Reserves,
    strategy::{
        Parameters,
        gcra::{CurrentRate, Parts},
    },
};

/// The class of IPv4 addresses that no prefix of the policy contains.
pub const DEFAULT_CLASS_V4: u32 = 0;

/// The class of IPv6 addresses that no prefix of the policy contains.
pub const DEFAULT_CLASS_V6: u32 = 1;

/// The compiled policy's tables.
pub trait Tables {
    /// The sizes of the other tables, and the limits by kind.
    fn features(&self) -> &Features;
    /// The limit at an index.
    fn limit(&self, limit_index: u32) -> Option<&LimitEntry>;
    /// The node at an index.
    fn node(&self, index: u32) -> Option<&Node>;
    /// The stretch at an index: some of a node's values, with the starts of ranges in them.
    fn stretch(&self, index: u32) -> Option<&Stretch>;
    /// The child at an index, for the values between two starts.
    fn child(&self, index: u32) -> Option<&Child>;
    /// The class at an index.
    fn class(&self, index: u32) -> Option<&Class>;
    /// A bucket's parameters: first the limits' defaults, by limit index, then the overrides'.
    fn rate(&self, index: u32) -> Option<&Parameters>;
    /// The reserves of a bucket, by the index of its [`Self::rate`]; `None`: no limit reserves.
    fn reserves(&self, index: u32) -> Option<&Reserves>;
    /// The rate in force of the limit with that interned id and an automatic rate. Only this and
    /// keys' shares change while a policy is in force.
    fn current_rate(&self, limit: LimitId) -> CurrentRate;
    /// Returns a key's own share of a shared limit at the time `now_ns`, and counts the tokens
    /// that a packet wants of it. `None`: the key has no share.
    fn key_share(&self, bucket: &BucketKey, wanted: u64, now_ns: u64) -> Option<Parts>;
    /// Records that a shared limit refused a packet of a key without a share.
    fn record_demand(&self, bucket: &BucketKey);
    /// The set of limits at an index from [`Masks`].
    fn mask(&self, index: u32) -> Option<&u64>;
    /// The secrets of the hash of names.
    fn name_keys(&self) -> &NameKeys;
    /// The slot of the table of names at an index.
    fn name(&self, index: u32) -> Option<&NameSlot>;
    /// The sieve at an index.
    fn sieve(&self, index: u32) -> Option<&Sieve>;
    /// The use of a sieve at an index.
    fn sieve_use(&self, index: u32) -> Option<&SieveUse>;

    /// Calls [`descend`]. In the kernel program it is a separate function, which the verifier walks
    /// once instead of once for each path that leads to it.
    #[inline(always)]
    fn descend(&self, node: u32, high: u64, low: u64) -> u32
    where
        Self: Sized,
    {
        descend(self, node, high, low)
    }

    /// Calls [`without_otherwise`]; in the kernel program a separate function for the same reason.
    #[inline(always)]
    fn without_otherwise(&self, matched: u64) -> u64 {
        without_otherwise(&self.features().otherwise, matched)
    }

    /// Returns the value, and hides from the kernel's verifier its facts about it.
    ///
    /// The verifier follows each known value through the program: bits gathered in a loop over the
    /// limits would make it walk every subset of them. Native code needs nothing here.
    #[must_use]
    #[inline(always)]
    fn opaque(&self, value: u64) -> u64 {
        value
    }
}

/// Returns the class of a source address, or `None` for a hole in the tables, which never happens.
#[inline(always)]
pub fn classify<'t, T: Tables>(tables: &'t T, source: &Address) -> Option<&'t Class> {
    let (dimension, default) = match source.family {
        Family::V4 => (Dimension::SourceV4, DEFAULT_CLASS_V4),
        Family::V6 => (Dimension::SourceV6, DEFAULT_CLASS_V6),
    };
    let start = tables.features().start(dimension);
    let index = if start.is_unused() {
        default
    } else {
        search(tables, start, source.high, source.low)
    };
    tables.class(index)
}

/// Returns the parameters of the limit at an index for addresses of `class`, to which it applies.
#[inline(always)]
pub fn parameters_of<'t, T: Tables>(
    tables: &'t T,
    class: &Class,
    limit_index: u32,
) -> Option<&'t Parameters> {
    tables.rate(class.rate_index(limit_index))
}
