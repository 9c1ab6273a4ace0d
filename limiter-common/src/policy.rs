//! The compiled policy: what the datapath reads to find the limits of a packet.
//!
//! Userspace compiles overrides into sorted ranges of addresses: each range has a class,
//! and a class says which limits have other parameters there. A source address costs one
//! look-up, however many overrides there are.

use crate::{
    address::{Address, Family},
    charge::{self, Charge, Match, Packet},
    gcra::Gcra,
    limit::{Cost, IdFormat, LimitId},
    packet::Facts,
};

/// In place of a prefix length: the limit is not for this address family.
const NOT_THIS_FAMILY: u8 = 0xff;

/// Steps of the binary search: enough for 2^24 ranges, the most a table may have.
const SEARCH_STEPS: u32 = 24;

/// The class of an address without any override.
pub const DEFAULT_CLASS: u32 = 0;

/// One limit as the datapath reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct LimitEntry {
    /// The interned id.
    pub id: u16,
    /// The [`Cost`], as [`encode_cost`] has it.
    cost: u8,
    ipv4_prefix_length: u8,
    ipv6_prefix_length: u8,
    /// 1: `default` holds for every id without an override; 0: only overrides count.
    has_default: u8,
    reserved: u16,
    default: Gcra,
}

const COST_PACKETS: u8 = 0;
const COST_BYTES: u8 = 1;
const COST_NEW_CONNECTIONS: u8 = 2;

const fn encode_cost(cost: Cost) -> u8 {
    match cost {
        Cost::Packets => COST_PACKETS,
        Cost::Bytes => COST_BYTES,
        Cost::NewConnections => COST_NEW_CONNECTIONS,
    }
}

impl LimitEntry {
    /// The entry of a limit; without `default`, only its overrides are limited.
    #[must_use]
    pub const fn new(id: LimitId, id_format: IdFormat, cost: Cost, default: Option<Gcra>) -> Self {
        Self {
            id: id.0,
            cost: encode_cost(cost),
            ipv4_prefix_length: match id_format.ipv4_prefix_length() {
                Some(length) => length,
                None => NOT_THIS_FAMILY,
            },
            ipv6_prefix_length: match id_format.ipv6_prefix_length() {
                Some(length) => length,
                None => NOT_THIS_FAMILY,
            },
            has_default: default.is_some() as u8,
            reserved: 0,
            default: match default {
                Some(gcra) => gcra,
                None => Gcra {
                    emission_interval: 0,
                    burst: 0,
                    burst_offset: 0,
                    ticks_per_ns: crate::ratio::Ratio::ONE,
                    ns_per_tick: crate::ratio::Ratio::ONE,
                },
            },
        }
    }

    /// How many leading bits of a source of `family` name its bucket; `None`: the limit is
    /// not for that family.
    #[must_use]
    #[inline(always)]
    pub const fn prefix_length(&self, family: Family) -> Option<u8> {
        let length = match family {
            Family::V4 => self.ipv4_prefix_length,
            Family::V6 => self.ipv6_prefix_length,
        };
        if length == NOT_THIS_FAMILY {
            None
        } else {
            Some(length)
        }
    }

    /// The tokens this packet costs; `None`: the limit does not count such packets.
    #[must_use]
    #[inline(always)]
    pub const fn cost_of(&self, facts: &Facts) -> Option<u64> {
        match self.cost {
            COST_PACKETS => Some(1),
            COST_BYTES => Some(facts.length),
            COST_NEW_CONNECTIONS if facts.opens_connection => Some(1),
            _ => None,
        }
    }

    /// The parameters of ids without an override.
    #[must_use]
    #[inline(always)]
    pub const fn default(&self) -> Option<&Gcra> {
        if self.has_default == 1 {
            Some(&self.default)
        } else {
            None
        }
    }
}

/// The start of a range of addresses; it ends where the next one starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Range {
    /// The first address's leading 64 bits, as [`Address`] aligns them.
    pub high: u64,
    /// The first address's trailing 64 bits.
    pub low: u64,
    /// The class of the addresses in it.
    pub class: u32,
    /// Always 0.
    pub reserved: u32,
}

/// Which limits have an override for the addresses of a class, and where they stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Class {
    /// Bit `slot` set: the limit in that slot has an override here.
    pub overridden: u64,
    /// Where the class's overrides start, in the order of the slots.
    pub first_override: u32,
    /// Always 0.
    pub reserved: u32,
}

impl Class {
    /// Where the override of the limit in `slot` stands; `None`: it has none here.
    #[must_use]
    #[inline(always)]
    pub const fn override_index(self, slot: u32) -> Option<u32> {
        let bit = 1u64 << (slot & 63);
        if self.overridden & bit == 0 {
            return None;
        }
        let before = (self.overridden & (bit - 1)).count_ones();
        Some(self.first_override.wrapping_add(before))
    }
}

/// The compiled policy's tables.
pub trait Tables {
    /// How many limits there are; they stand in the slots from 0 on.
    fn limit_count(&self) -> u32;
    /// The limit in a slot.
    fn limit(&self, slot: u32) -> Option<&LimitEntry>;
    /// How many ranges of this family there are; 0: no address of it has an override.
    fn range_count(&self, family: Family) -> u32;
    /// A range; they are sorted, and the first starts at address 0.
    fn range(&self, family: Family, index: u32) -> Option<&Range>;
    /// A class.
    fn class(&self, index: u32) -> Option<&Class>;
    /// An override's parameters.
    fn override_at(&self, index: u32) -> Option<&Gcra>;

    /// [`search`]. The kernel program makes it a function of its own, which the verifier
    /// walks once and not once for each way to get here; so with [`Self::prepare`].
    #[inline(always)]
    fn class_index(&self, address: Address) -> u32
    where
        Self: Sized,
    {
        search(self, address)
    }

    /// [`charge::prepare`].
    #[inline(always)]
    fn prepare(&self, packet: &Packet, slot: u32, charge: &mut Charge) -> Match
    where
        Self: Sized,
    {
        charge::prepare(self, packet, slot, charge)
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

/// The index of an address's class: a binary search for the last range that starts at or
/// before it.
#[inline(always)]
pub fn search<T: Tables>(tables: &T, address: Address) -> u32 {
    let mut first = 0;
    // Of a number that it knows, the verifier would walk the search for each range there is.
    #[expect(clippy::cast_possible_truncation, reason = "it was 32 bits before")]
    let mut end = tables.opaque(u64::from(tables.range_count(address.family))) as u32;
    let mut class = DEFAULT_CLASS;
    let mut step = 0;
    while step < SEARCH_STEPS && first < end {
        let middle = first + (end - first) / 2;
        let Some(range) = tables.range(address.family, middle) else {
            break;
        };
        if address.at_or_after(range.high, range.low) {
            class = range.class;
            first = middle + 1;
        } else {
            end = middle;
        }
        step += 1;
    }
    class
}

/// The class of an address.
#[inline(always)]
pub fn classify<T: Tables>(tables: &T, address: Address) -> Class {
    if tables.range_count(address.family) == 0 {
        return Class::default();
    }
    match tables.class(tables.class_index(address)) {
        Some(class) => *class,
        None => Class::default(),
    }
}

/// The parameters of the limit in `slot` for addresses of `class`; `None`: the limit does
/// not apply to them.
#[inline(always)]
pub fn parameters<'a, T: Tables>(
    tables: &'a T,
    limit: &'a LimitEntry,
    class: Class,
    slot: u32,
) -> Option<&'a Gcra> {
    match class.override_index(slot) {
        Some(index) => tables.override_at(index),
        None => limit.default(),
    }
}
