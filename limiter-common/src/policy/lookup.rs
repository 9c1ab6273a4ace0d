//! Looks up the policy's entry for a value of a dimension, in a cache-friendly trie of few levels.
//!
//! The ranges of a dimension are given by their starts. As in DXR (Zec, Rizzo and Mikuc, "DXR:
//! Towards a Billion Routing Lookups Per Second in Software", 2012), a value's leading bits choose
//! a stretch of values, and the ranges in it are searched. As in an LC-trie (Nilsson and Karlsson,
//! "IP-Address Lookup Using LC-Tries", 1999), a node uses the bits where its ranges begin to
//! differ, which is late in IPv6 addresses.
//!
//! Unlike both it is small, since a flood leaves little of the cache: a stretch is half a cache
//! line, found without a pointer, and takes 14 bits for each cell in which a range starts. A cell
//! is several values with one child, so a prefix that is one cell takes 14 bits, not 28 for its
//! start and end. If 14 bits cannot distinguish ranges, because they start inside a cell or in too
//! many cells of a stretch, another node below divides them.
//!
//! It takes at most 16 steps for IPv6, 9 for IPv4 and 6 for ports. With 100 000 /28s it takes
//! 256 KiB and 3 to 44 ns; sorted ranges with an index took 6.5 MiB and 100 to 230 ns (16 million
//! sources, both CPUs loaded).

use super::{Child, Tables};

/// The maximum number of steps of a look-up, which is the number of nodes on its path.
///
/// A node below another has either at most a fifteenth of its starts, rounded up, or one of its
/// cells. Up to 14 starts always fit a stretch. So 2^24 ranges, the most that are compiled, are
/// down to 14 after 6 steps. A cell with starts inside it has 14 bits less than its node; so 128
/// bits are down to cells of one value after 9 steps, 32 after 2, 16 after one. With the last step
/// that makes 16 for IPv6, 9 for IPv4, and 6 for ports: their starts are down to 14 after 4. Random
/// prefixes take 1 or 2.
pub const MOST_STEPS: u32 = 16;

/// Divides values by some of their bits: into cells of `1 << grain` values, in stretches of
/// `1 << bits` cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Node {
    /// The leading 64 bits of the first cell's start. Values before it count as in that cell.
    pub high: u64,
    /// The trailing 64 bits of that start.
    pub low: u64,
    /// The number of the last cell. Values after it count as in that cell.
    pub last: u64,
    /// The index of the first stretch; the others follow.
    pub first: u32,
    /// The number of trailing bits of a value that do not matter here, up to 127.
    pub grain: u16,
    /// The number of bits of a cell's number that are its position in the stretch, up to
    /// [`Stretch::BITS`].
    pub bits: u16,
}

impl Node {
    /// Returns the number of a value's cell.
    #[must_use]
    #[inline(always)]
    const fn cell(&self, high: u64, low: u64) -> u64 {
        // In two words by hand: BPF has no wider shifts.
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

/// The cells of a stretch in which ranges start: half a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(32))]
pub struct Stretch {
    /// The index of the first child, for the cells before the first listed cell. Then follow, for
    /// each listed cell, its child and the child of the cells after it.
    children: u32,
    /// The numbers of the cells in the stretch, two and then twelve, as lanes of 16 bits;
    /// [`Self::NONE`] if there are fewer.
    two: u32,
    twelve: [u64; 3],
}

impl Stretch {
    /// The maximum number of bits of a cell's number in its stretch.
    pub const BITS: u16 = 14;

    /// The most cells in a stretch.
    pub const CELLS: usize = 14;

    /// A number after that of every cell.
    const NONE: u16 = (1 << 15) - 1;

    /// A one in every lane.
    const ONES: u64 = 0x0001_0001_0001_0001;

    /// Makes a stretch with ranges that start in these cells, given in order by their numbers in
    /// the stretch. Cells beyond [`Self::CELLS`] are left out.
    #[must_use]
    pub fn new(children: u32, cells: &[u16]) -> Self {
        let lane = |index: usize| cells.get(index).map_or(Self::NONE, |cell| *cell);
        let word = |first: usize| {
            (0..4).fold(0, |word, index| word << 16 | u64::from(lane(first + index)))
        };
        Self {
            children,
            two: u32::from(lane(0)) << 16 | u32::from(lane(1)),
            twelve: [word(2), word(6), word(10)],
        }
    }

    /// Returns the index of the child of a cell, by its number in the stretch.
    #[must_use]
    #[inline(always)]
    const fn child(&self, cell: u64) -> u32 {
        const NONE: u64 = Stretch::NONE as u64 * Stretch::ONES;
        // All lanes at once, without a branch, which would wait for the memory.
        let [second, third, fourth] = self.twelve;
        let children = children_before(cell, NONE << 32 | self.two as u64)
            + children_before(cell, second)
            + children_before(cell, third)
            + children_before(cell, fourth);
        let children = children.wrapping_mul(Self::ONES) >> 48;
        self.children.wrapping_add((children & 0x1f) as u32)
    }
}

/// Returns in each lane the number of children that the lane's cell puts before the child of
/// `cell`: 1 if it is `cell`, 2 if it is before it.
#[inline(always)]
const fn children_before(cell: u64, lanes: u64) -> u64 {
    const ONES: u64 = Stretch::ONES;
    // The top bit of a lane stays set if `cell` is not before the lane's cell, and also after
    // subtracting one if it is behind it. No lane has its top bit set, so there is never a borrow.
    let not_before = ((ONES << 15) | (cell * ONES)).wrapping_sub(lanes);
    let behind = not_before.wrapping_sub(ONES);
    ((not_before >> 15) & ONES) + ((behind >> 15) & ONES)
}

/// Returns the policy's entry for the value `high` and `low`, from the `start` of its dimension.
#[inline(always)]
pub fn search<T: Tables>(tables: &T, start: Child, high: u64, low: u64) -> u32 {
    let Some(node) = start.as_node() else {
        return start.0;
    };
    // One step nearly always suffices.
    let child = step(tables, node, high, low);
    match child.as_node() {
        None => child.0,
        Some(node) => tables.descend(node, high, low),
    }
}

/// Looks up a value in a dimension that few policies use: in the kernel program this is a call, not
/// inlined.
#[inline(always)]
pub(super) fn search_rarely<T: Tables>(tables: &T, start: Child, high: u64, low: u64) -> u32 {
    match start.as_node() {
        None => start.0,
        Some(node) => tables.descend(node, high, low),
    }
}

/// Returns the policy's entry for a value below a node.
#[inline(always)]
pub fn descend<T: Tables>(tables: &T, start: u32, high: u64, low: u64) -> u32 {
    let mut node = start;
    let mut steps = 0;
    while steps < MOST_STEPS {
        let child = step(tables, node, high, low);
        match child.as_node() {
            None => return child.0,
            Some(next) => node = next,
        }
        steps += 1;
    }
    HOLE.0
}

/// The child where the tables have a hole, which never happens: IPv4's default class, or no limit.
const HOLE: Child = Child::value(0);

/// Returns a node's child for a value.
#[inline(always)]
fn step<T: Tables>(tables: &T, node: u32, high: u64, low: u64) -> Child {
    let Some(node) = tables.node(node) else {
        return HOLE;
    };
    let cell = node.cell(high, low);
    let bits = node.bits & 15;
    let number = ((cell >> bits) & 0xffff_ffff) as u32;
    let Some(stretch) = tables.stretch(node.first.wrapping_add(number)) else {
        return HOLE;
    };
    match tables.child(stretch.child(cell & ((1 << bits) - 1))) {
        Some(child) => *child,
        None => HOLE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_of_a_stretch_has_its_child() {
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
                let found = stretch.child(cell.into());
                assert_eq!(found as usize, expected, "{cell} in {cells:?}");
            }
        }
    }
}
