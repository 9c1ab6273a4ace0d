//! What the policy says of each value of a dimension: a trie of few levels, made for the cache.
//!
//! The ranges of a dimension are given by where they start. As in DXR (Zec, Rizzo and Mikuc,
//! "DXR: Towards a Billion Routing Lookups Per Second in Software", 2012), a value's leading
//! bits choose a stretch of values, and the ranges in it are searched. As in an LC-trie (Nilsson
//! and Karlsson, "IP-Address Lookup Using LC-Tries", 1999), a node takes its bits where its
//! ranges begin to differ, which those of IPv6 addresses do late.
//!
//! What differs from both is the size, since a flood leaves little of the cache: a stretch is
//! half a cache line, found without a pointer, and has 14 bits for each place where a range
//! starts. That is not a value but a cell of some, for which there is a slot of its own: a prefix
//! that is one cell takes one place, and not two for its start and its end. What 14 bits do not
//! tell apart, because ranges start inside a cell or in too many cells of a stretch, is under a
//! node of its own.

use super::Tables;

/// The most steps of a look-up: nodes that are gone through.
///
/// A node below another has either no more than a fifteenth of its starts, rounded up, or one of
/// its cells. Up to 14 starts always fit a stretch. So 2^24 ranges, the most that are compiled,
/// are down to 14 after 6 steps. A cell that has starts inside it has 14 bits less than what its
/// node divides; so 128 bits are down to cells of one value after 9 steps, 32 after 2, 16 after
/// one. And there is a last step: 16 for IPv6, 9 for IPv4, 6 for ports, whose starts are down to
/// 14 after 4. Random prefixes take 1 or 2.
pub const MOST_STEPS: u32 = 16;

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
    /// Where the first cell starts: the leading 64 bits. Values before it count as in that cell.
    pub high: u64,
    /// The trailing 64 bits.
    pub low: u64,
    /// The number of the last cell. Values behind it count as in that cell.
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

/// In which cells of a stretch ranges start: half a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(32))]
pub struct Stretch {
    /// The index of the first slot. Cells before the first of those here have it; then come, for
    /// each of them, the slot of the cell itself, and that of the cells behind it.
    slots: u32,
    /// Two of the cells, and then twelve, as lanes of 16 bits: their numbers in the stretch;
    /// [`Self::NONE`] where there are fewer.
    two: u32,
    twelve: [u64; 3],
}

impl Stretch {
    /// How many bits the number of a cell in its stretch has at most.
    pub const BITS: u16 = 14;

    /// How many cells there is room for.
    pub const CELLS: usize = 14;

    /// Behind every cell.
    const NONE: u16 = (1 << 15) - 1;

    /// A one in every lane.
    const ONES: u64 = 0x0001_0001_0001_0001;

    /// With ranges that start in these cells, by their numbers in the stretch, in order: up to
    /// [`Self::CELLS`] of them, others are left out.
    #[must_use]
    pub fn new(slots: u32, cells: &[u16]) -> Self {
        let lane = |place: usize| cells.get(place).map_or(Self::NONE, |cell| *cell);
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
        const NONE: u64 = Stretch::NONE as u64 * Stretch::ONES;
        // All lanes at once, without a branch that would wait for the memory.
        let [second, third, fourth] = self.twelve;
        let slots = slots_before(cell, NONE << 32 | self.two as u64)
            + slots_before(cell, second)
            + slots_before(cell, third)
            + slots_before(cell, fourth);
        let slots = slots.wrapping_mul(Self::ONES) >> 48;
        self.slots.wrapping_add((slots & 0x1f) as u32)
    }
}

/// In each lane, how many slots are before that of a cell: 1 if the lane's is this cell, 2 if it
/// is one before.
#[inline(always)]
const fn slots_before(cell: u64, lanes: u64) -> u64 {
    const ONES: u64 = Stretch::ONES;
    // The top bit of a lane is set where the cell is not before the lane's, and still is without
    // one where it is behind. As no lane has the top bit itself, there is never a borrow.
    let not_before = ((ONES << 15) | (cell * ONES)).wrapping_sub(lanes);
    let behind = not_before.wrapping_sub(ONES);
    ((not_before >> 15) & ONES) + ((behind >> 15) & ONES)
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

/// The same, where few policies have anything to say: in the kernel program one call, and no
/// instructions of the program's own.
#[inline(always)]
pub(super) fn search_rarely<T: Tables>(tables: &T, start: Slot, high: u64, low: u64) -> u32 {
    match start.as_node() {
        None => start.0,
        Some(node) => tables.descend(node, high, low),
    }
}

/// What it says of a value below a node.
#[inline(always)]
pub fn descend<T: Tables>(tables: &T, start: u32, high: u64, low: u64) -> u32 {
    let mut node = start;
    let mut steps = 0;
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

/// What is read from a hole in the tables, which have none: the default class of IPv4, and no
/// limit at all.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_of_a_stretch_has_its_slot() {
        const LAST: u16 = (1 << Stretch::BITS) - 1;
        let sets: [&[u16]; 6] = [
            &[],
            &[0],
            &[LAST],
            &[0, 1, 2, LAST - 1, LAST],
            &[1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610],
            &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, LAST - 1, LAST],
        ];
        for cells in sets {
            let stretch = Stretch::new(1_000, cells);
            for cell in 0..=LAST {
                let before = cells.iter().filter(|one| **one < cell).count();
                let expected = 1_000 + 2 * before + usize::from(cells.contains(&cell));
                let found = stretch.slot(cell.into());
                assert_eq!(found as usize, expected, "{cell} in {cells:?}");
            }
        }
    }
}
