//! What the policy says of each value of a dimension: a trie of few levels, made for the cache.
//!
//! The ranges of a dimension are given by where they start. As in DXR (Zec, Rizzo and Mikuc,
//! "DXR: Towards a Billion Routing Lookups Per Second in Software", 2012), a value's leading
//! bits choose a stretch of values, and the starts in it are searched. As in an LC-trie (Nilsson
//! and Karlsson, "IP-Address Lookup Using LC-Tries", 1999), a node takes its bits where its
//! ranges begin to differ, which those of IPv6 addresses do late. What differs from both is the
//! size: a start is 15 bits here, relative to its stretch, and a stretch with all its starts is
//! half a cache line, found without a pointer. So 200 000 ranges, which as starts of 128 bits and
//! values of 32 would be 5 MB, are half a megabyte, and stay in the cache while a flood goes
//! through it.
//!
//! 15 bits do not tell everything of a start. Those that a cell of a stretch has inside it, and
//! those of a stretch that has too many, are under a node of their own.

use super::Tables;

/// The most steps of a look-up: nodes that are gone through.
///
/// What is below a node has either no more than a seventh of its starts, or is one cell: its
/// stretches are 2^15 cells each, or its cells are single values. A node of up to 7 starts has
/// two cells with something else behind them for each, which fit one stretch. So 2^24 ranges,
/// the most that are compiled, are down to 7 after 8 steps; 128 bits to single values after 8
/// cells; and there is a last step. IPv4 takes at most 11, ports 7. Random prefixes take 1 or 2.
pub const MOST_STEPS: u32 = 17;

/// What is known of some values: one value of the policy for all, or a node to go on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Slot(u32);

impl Slot {
    /// Of a dimension that no limit matches on.
    pub const UNUSED: Self = Self(u32::MAX);

    const NODE: u32 = 1 << 31;

    /// The policy says `value` of them, a class or where a set of limits stands; below 2^31.
    #[must_use]
    pub const fn value(value: u32) -> Self {
        Self(value)
    }

    /// The node at `index` tells them apart; below 2^31 - 1.
    #[must_use]
    pub const fn node(index: u32) -> Self {
        Self(Self::NODE | index)
    }

    /// Whether it is [`Self::UNUSED`].
    #[must_use]
    #[inline(always)]
    pub const fn is_unused(self) -> bool {
        self.0 == Self::UNUSED.0
    }

    /// The index of the node, if it is one.
    #[must_use]
    #[inline(always)]
    pub const fn as_node(self) -> Option<u32> {
        if self.0 & Self::NODE == 0 {
            None
        } else {
            Some(self.0 & !Self::NODE)
        }
    }
}

/// Tells values apart by some of their bits: cells of `1 << grain` values each, in stretches of
/// `1 << bits` cells each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Node {
    /// Where the first cell starts: the leading 64 bits. Values before it are in that cell.
    pub high: u64,
    /// The trailing 64 bits.
    pub low: u64,
    /// The number of the last cell. Values behind it are in that cell.
    pub last: u64,
    /// The index of the first stretch; the others follow.
    pub first: u32,
    /// How many bits of a value do not matter here, up to 127.
    pub grain: u16,
    /// How many bits of a cell's number are its place in the stretch, up to
    /// [`Stretch::BITS`].
    pub bits: u16,
}

impl Node {
    /// The number of a value's cell.
    #[must_use]
    #[inline(always)]
    const fn cell(&self, high: u64, low: u64) -> u64 {
        // In two words by hand: BPF has no shift of wider ones.
        if high < self.high || (high == self.high && low < self.low) {
            return 0;
        }
        let borrow = (low < self.low) as u64;
        let high = high.wrapping_sub(self.high).wrapping_sub(borrow);
        let low = low.wrapping_sub(self.low);
        let shift = self.grain & 63;
        let number = if self.grain >= 64 {
            high >> shift
        } else if high >> shift == 0 {
            (high << 1) << (63 - shift) | low >> shift
        } else {
            u64::MAX
        };
        if number < self.last {
            number
        } else {
            self.last
        }
    }
}

/// Where the ranges of a stretch start: half a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(32))]
pub struct Stretch {
    /// The index of the slot before the first start; those behind each start follow.
    slots: u32,
    /// Two starts, and then twelve: the numbers of their cells in the stretch, as lanes of 16
    /// bits, in order; [`Self::NONE`] where there are fewer.
    two: u32,
    twelve: [u64; 3],
}

impl Stretch {
    /// How many bits the number of a cell in its stretch has.
    pub const BITS: u16 = 15;

    /// How many starts there is room for.
    pub const STARTS: usize = 14;

    /// Behind every cell.
    const NONE: u16 = 1 << Self::BITS;

    /// A one in every lane.
    const ONES: u64 = 0x0001_0001_0001_0001;

    /// With these starts, in order, numbers of cells in the stretch above 0: up to
    /// [`Self::STARTS`] of them, the others are left out.
    #[must_use]
    pub fn new(slots: u32, starts: &[u16]) -> Self {
        let lane = |place: usize| starts.get(place).map_or(Self::NONE, |start| *start);
        let word = |first: usize| {
            (0..4).fold(0, |word, place| word << 16 | u64::from(lane(first + place)))
        };
        Self {
            slots,
            two: u32::from(lane(0)) << 16 | u32::from(lane(1)),
            twelve: [word(2), word(6), word(10)],
        }
    }

    /// The index of the slot of a cell, by its number in the stretch.
    #[must_use]
    #[inline(always)]
    const fn slot(&self, cell: u64) -> u32 {
        // All lanes at once, without a branch that waits for the memory: the top bit of a lane
        // stays where its start is not above the cell.
        let cells = (cell * Self::ONES) | Self::ONES << 15;
        let none = (Self::ONES << 15) & !0xffff_ffff;
        let [second, third, fourth] = self.twelve;
        let reached = reached(cells, none | self.two as u64)
            + reached(cells, second)
            + reached(cells, third)
            + reached(cells, fourth);
        let count = reached.wrapping_mul(Self::ONES) >> 48;
        self.slots.wrapping_add((count & 0xf) as u32)
    }
}

/// A one in each lane in which the start is not above the cell.
#[inline(always)]
const fn reached(cells: u64, starts: u64) -> u64 {
    (cells.wrapping_sub(starts) >> 15) & Stretch::ONES
}

/// What the policy says of the value `high` and `low`, where `start` is what is known of its
/// dimension.
#[inline(always)]
pub fn search<T: Tables>(tables: &T, start: Slot, high: u64, low: u64) -> u32 {
    let Some(node) = start.as_node() else {
        return start.0;
    };
    // One step is nearly always enough.
    let slot = step(tables, node, high, low);
    match slot.as_node() {
        None => slot.0,
        Some(node) => tables.descend(node, high, low),
    }
}

/// What it says of a value below a node that another one led to.
#[inline(always)]
pub fn descend<T: Tables>(tables: &T, start: u32, high: u64, low: u64) -> u32 {
    let mut node = start;
    let mut steps = 1;
    while steps < MOST_STEPS {
        let slot = step(tables, node, high, low);
        match slot.as_node() {
            None => return slot.0,
            Some(next) => node = next,
        }
        steps += 1;
    }
    HOLE.0
}

/// What there is where the tables have a hole, the default class of IPv4 and no limit at all:
/// they have none.
const HOLE: Slot = Slot::value(0);

/// What is known of a value below a node.
#[inline(always)]
fn step<T: Tables>(tables: &T, node: u32, high: u64, low: u64) -> Slot {
    let Some(node) = tables.node(node) else {
        return HOLE;
    };
    let cell = node.cell(high, low);
    let bits = node.bits & 15;
    let number = ((cell >> bits) & 0xffff_ffff) as u32;
    let Some(stretch) = tables.stretch(node.first.wrapping_add(number)) else {
        return HOLE;
    };
    match tables.slot(stretch.slot(cell & ((1 << bits) - 1))) {
        Some(slot) => *slot,
        None => HOLE,
    }
}
