//! The index in front of the ranges; what it is like stands with its look-up, `policy::search`.

use std::ops;

use limiter_common::policy::{Node, Range, Slot};

use super::index;

/// The ranges of all dimensions, and their indices.
#[derive(Clone, Debug, Default)]
pub(super) struct Indexed {
    pub(super) nodes: Vec<Node>,
    pub(super) slots: Vec<Slot>,
    pub(super) ranges: Vec<Range>,
}

/// Where values are looked up, and the most steps that it takes.
type Found = (Slot, u32);

impl Indexed {
    /// Adds the ranges of a dimension, from 0 on, and returns where each of its values is found.
    pub(super) fn add(&mut self, ranges: Vec<Range>) -> Slot {
        if ranges.is_empty() {
            return Slot::UNUSED;
        }
        let first = self.ranges.len();
        self.ranges.extend(ranges);
        let (slot, _) = self.find(0, first..self.ranges.len());
        slot
    }

    /// Where the values from `from` on are found that are in some ranges; the first of those
    /// starts at `from` or before, the others behind it.
    fn find(&mut self, from: u128, ranges: ops::Range<usize>) -> Found {
        let (first, count) = (ranges.start, ranges.len());
        if count == 1 {
            return (Slot::value(self.ranges[first].value), 0);
        }
        let starts = count - 1;
        let search = (
            Slot::ranges(index(first), index(count)),
            usize::BITS - starts.leading_zeros(),
        );
        if starts <= Slot::SEARCHED {
            return search;
        }
        let (nodes, slots) = (self.nodes.len(), self.slots.len());
        let node = self.node(from, ranges);
        if node.1 < search.1 {
            return node;
        }
        self.nodes.truncate(nodes);
        self.slots.truncate(slots);
        search
    }

    /// Puts a node, and what is under it, in front of ranges.
    fn node(&mut self, from: u128, ranges: ops::Range<usize>) -> Found {
        let (base, last, shift) = self.stretches(&ranges);
        let (place, slots) = (self.nodes.len(), self.slots.len());
        let (high, low) = halves(base);
        self.nodes.push(Node {
            high,
            low,
            first: index(slots),
            last: index(last),
            shift,
            reserved: 0,
        });
        self.slots.resize(slots + last + 1, Slot::UNUSED);
        let mut deepest = 0;
        // The last range that starts where the stretch does or before, and the first one that
        // starts behind the stretch.
        let (mut first, mut end) = (ranges.start, ranges.start + 1);
        for number in 0..=last {
            let in_stretch = |start: u128| (start - base) >> shift == number as u128;
            let stretch = if number == 0 {
                from
            } else {
                base + ((number as u128) << shift)
            };
            while end < ranges.end && in_stretch(start(&self.ranges[end])) {
                end += 1;
            }
            while first + 1 < end && start(&self.ranges[first + 1]) <= stretch {
                first += 1;
            }
            let (slot, steps) = self.find(stretch, first..end);
            self.slots[slots + number] = slot;
            deepest = deepest.max(steps);
            first = end - 1;
        }
        (Slot::node(index(place)), deepest + 1)
    }

    /// As many stretches as the ranges but the first have starts, to twice as many: where the
    /// first stretch starts, how many follow it, and the bits in each.
    fn stretches(&self, ranges: &ops::Range<usize>) -> (u128, usize, u32) {
        let first = start(&self.ranges[ranges.start + 1]);
        let last = start(&self.ranges[ranges.end - 1]);
        let most = 2 * (ranges.len() - 1);
        let stretches = |shift: u32| {
            let base = first >> shift << shift;
            let following = usize::try_from((last - base) >> shift).ok()?;
            (following < most).then_some((base, following, shift))
        };
        (0..128)
            .find_map(stretches)
            .expect("the longest stretches are two halves of all values")
    }
}

/// A range that starts at a value of up to 128 bits.
pub(super) const fn range(start: u128, value: u32) -> Range {
    let (high, low) = halves(start);
    Range {
        high,
        low,
        value,
        reserved: 0,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "takes the two halves apart"
)]
const fn halves(value: u128) -> (u64, u64) {
    ((value >> 64) as u64, value as u64)
}

fn start(range: &Range) -> u128 {
    u128::from(range.high) << 64 | u128::from(range.low)
}

#[cfg(test)]
mod tests;
