//! What the policy says of each value of a dimension: sorted ranges, and an index in front.
//!
//! As in DXR (Zec, Rizzo and Mikuc, "DXR: Towards a Billion Routing Lookups Per Second in
//! Software", 2012), a value's leading bits choose a slot, and a slot has the few ranges that
//! are left to search, or what the one that is left says. DXR takes the first bits of an IPv4
//! address, which does not do for IPv6, where they hardly differ. So a node takes its bits where
//! the ranges under it begin to differ, and a slot with many ranges has a node of its own, as in
//! an LC-trie (Nilsson and Karlsson, "IP-Address Lookup Using LC-Tries", 1999).

use super::Tables;

/// The most steps of a look-up: slots looked into, and ranges compared with.
///
/// The compiler indexes `n` starts of ranges only where that saves a step over their binary
/// search, whose steps are the bits of `n`. So where `steps` are left at an index, there are
/// `2^(steps - 1)` starts or more, and as many slots: the `steps - 1` that are left in some slot
/// are among values of at least `steps` bits less. Below [`Slot::SEARCHED`] nothing is indexed.
/// Hence 15 steps for 128 bits (15 + 14 + ... + 4 = 114, and 16 more are too many), 8 for IPv4
/// (8 + 7 + 6 + 5 + 4 = 30) and 5 for ports, whatever the prefixes are and however many. Random
/// ones take 2 or 3.
pub const MOST_STEPS: u32 = 15;

/// Where a range of values starts; it ends where the next one of its dimension starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Range {
    /// The first value's leading 64 bits.
    pub high: u64,
    /// The first value's trailing 64 bits.
    pub low: u64,
    /// What the policy says of the values in it: a class, or where a set of limits stands.
    pub value: u32,
    /// Always 0.
    pub reserved: u32,
}

/// What is left of a dimension's ranges for some of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Slot {
    /// One range is left: its value. Several: the index of the first one. Many: of a node.
    pub first: u32,
    /// How many ranges are left; [`Self::NODE`]: many.
    pub count: u32,
}

impl Slot {
    /// Of a dimension that no limit matches on.
    pub const UNUSED: Self = Self { first: 0, count: 0 };

    /// Up to so many starts of ranges are searched, in 3 steps, and never indexed: they share a
    /// few cache lines, and a node would take two.
    pub const SEARCHED: usize = 7;

    const NODE: u32 = u32::MAX;

    /// The one range that is left says `value`.
    #[must_use]
    pub const fn value(value: u32) -> Self {
        Self {
            first: value,
            count: 1,
        }
    }

    /// `count` ranges are left, two or more, of which the first starts no later than any of the
    /// values.
    #[must_use]
    pub const fn ranges(first: u32, count: u32) -> Self {
        Self { first, count }
    }

    /// Those under a node are left.
    #[must_use]
    pub const fn node(index: u32) -> Self {
        Self {
            first: index,
            count: Self::NODE,
        }
    }

    /// Whether it is [`Self::UNUSED`].
    #[must_use]
    #[inline(always)]
    pub const fn is_unused(&self) -> bool {
        self.count == 0
    }
}

/// An index by some bits: slots for stretches of `1 << shift` values each, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Node {
    /// Where the first stretch starts: the leading 64 bits. Values before it are in its slot.
    pub high: u64,
    /// The trailing 64 bits.
    pub low: u64,
    /// The index of the first slot.
    pub first: u32,
    /// How many follow it. Values behind the last stretch are in the last slot.
    pub last: u32,
    /// How many bits of a value do not matter here, up to 127.
    pub shift: u32,
    /// Always 0.
    pub reserved: u32,
}

impl Node {
    /// The index of a value's slot.
    #[must_use]
    #[inline(always)]
    pub const fn slot(&self, high: u64, low: u64) -> u32 {
        // In two words by hand: BPF has no shift of wider ones.
        if !starts_at_or_before(self.high, self.low, high, low) {
            return self.first;
        }
        let borrow = (low < self.low) as u64;
        let high = high.wrapping_sub(self.high).wrapping_sub(borrow);
        let low = low.wrapping_sub(self.low);
        let shift = self.shift & 63;
        let number = if self.shift >= 64 {
            high >> shift
        } else if high >> shift == 0 {
            (high << 1) << (63 - shift) | low >> shift
        } else {
            u64::MAX
        };
        let last = self.last as u64;
        let number = if number < last { number } else { last };
        self.first.wrapping_add((number & 0xffff_ffff) as u32)
    }
}

#[inline(always)]
const fn starts_at_or_before(start_high: u64, start_low: u64, high: u64, low: u64) -> bool {
    start_high < high || (start_high == high && start_low <= low)
}

/// The value of the last range that starts at or before `high` and `low`, of those that are left
/// in the slot that the dimension starts with.
///
/// 0, the default class of IPv4 and no limit at all, when the tables have a hole: they have none.
#[inline(always)]
pub fn search<T: Tables>(tables: &T, start: Slot, high: u64, low: u64) -> u32 {
    let Slot { first, count } = descend(tables, start, high, low);
    if count == 1 {
        return first;
    }
    // The range that starts at or before the value, among those from `at` on.
    let (mut at, mut left) = (first, count);
    let mut step = 0;
    while step < MOST_STEPS && left > 1 {
        let half = left / 2;
        let Some(range) = tables.range(at.wrapping_add(half)) else {
            break;
        };
        if starts_at_or_before(range.high, range.low, high, low) {
            at = at.wrapping_add(half);
            left -= half;
        } else {
            left = half;
        }
        step += 1;
    }
    match tables.range(at) {
        Some(range) => range.value,
        None => 0,
    }
}

/// The slot that a value has under the nodes.
#[inline(always)]
fn descend<T: Tables>(tables: &T, start: Slot, high: u64, low: u64) -> Slot {
    let mut slot = start;
    let mut step = 0;
    while step < MOST_STEPS && slot.count == Slot::NODE {
        let Some(node) = tables.node(slot.first) else {
            break;
        };
        let Some(next) = tables.slot(node.slot(high, low)) else {
            break;
        };
        slot = *next;
        step += 1;
    }
    slot
}
