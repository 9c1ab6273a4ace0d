//! The nodes in front of the ranges; what they are like stands with their look-up,
//! `policy::search`.

mod grid;

use std::{collections::HashMap, ops::RangeInclusive};

use limiter_common::policy::{Node, Slot, Stretch};

use self::grid::{Grid, Started};
use super::index;

/// Where a range of values starts; it ends where the next one of its dimension starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    /// The first value, of up to 128 bits.
    pub(super) start: u128,
    /// What the policy says of the values in it: a class, or where a set of limits stands.
    pub(super) value: u32,
}

/// The slot of no values at all: of those between two cells without any in between.
const NOWHERE: Slot = Slot::value(0);

/// The tables of all dimensions.
#[derive(Clone, Debug, Default)]
pub(super) struct Indexed {
    pub(super) nodes: Vec<Node>,
    pub(super) stretches: Vec<Stretch>,
    pub(super) slots: Vec<Slot>,
    /// Where the slots of a stretch stand. Those of many stretches are the same, where
    /// prefixes have a few different rates between them.
    known: HashMap<Vec<Slot>, u32>,
}

impl Indexed {
    /// Adds the ranges of a dimension, from 0 on, and returns where the look-up of its values
    /// starts.
    pub(super) fn add(&mut self, ranges: &[Range]) -> Slot {
        if ranges.is_empty() {
            return Slot::UNUSED;
        }
        self.slot(0..=u128::MAX, ranges)
    }

    /// What is known of some values; the first of the ranges starts at the first of them or
    /// before.
    fn slot(&mut self, values: RangeInclusive<u128>, ranges: &[Range]) -> Slot {
        if values.is_empty() {
            return NOWHERE;
        }
        match within(ranges, &values) {
            [one] => Slot::value(one.value),
            several => self.node(&values, several),
        }
    }

    fn node(&mut self, values: &RangeInclusive<u128>, ranges: &[Range]) -> Slot {
        let grid = Grid::new(values, &ranges[1..]);
        let place = self.nodes.len();
        let first = self.stretches.len();
        self.nodes.push(grid.node(index(first)));
        let empty = Stretch::new(0, &[]);
        self.stretches.resize(first + grid.stretches(), empty);
        for number in 0..grid.stretches() {
            let of_stretch = grid.stretch(values, number);
            let inside = within(ranges, &of_stretch);
            self.stretches[first + number] = self.stretch(&grid, number, &of_stretch, inside);
        }
        Slot::node(index(place))
    }

    fn stretch(
        &mut self,
        grid: &Grid,
        number: usize,
        values: &RangeInclusive<u128>,
        ranges: &[Range],
    ) -> Stretch {
        let starts = &ranges[1..];
        let mut started = grid.started(starts);
        if started.len() > Stretch::CELLS {
            started = dividing(started, starts.len().div_ceil(Stretch::CELLS + 1));
        }
        let mut slots = Vec::with_capacity(2 * started.len() + 1);
        let mut from = *values.start();
        for Started { cell, .. } in &started {
            let (first, last) = grid.values(*cell).into_inner();
            slots.push(self.slot(from..=first.saturating_sub(1), ranges));
            slots.push(self.slot(first.max(from)..=last.min(*values.end()), ranges));
            from = last.saturating_add(1);
        }
        slots.push(self.slot(from..=*values.end(), ranges));
        let first_cell = grid.first_cell(number);
        let cells = started.iter().map(|one| narrow(one.cell - first_cell));
        let cells: Vec<_> = cells.collect();
        Stretch::new(self.place(slots), &cells)
    }

    /// Where these slots stand, one behind the other.
    fn place(&mut self, slots: Vec<Slot>) -> u32 {
        let next = index(self.slots.len());
        *self.known.entry(slots).or_insert_with_key(|slots| {
            self.slots.extend(slots);
            next
        })
    }
}

/// The ranges that some of their values are in.
fn within<'a>(ranges: &'a [Range], values: &RangeInclusive<u128>) -> &'a [Range] {
    let behind_first = ranges.partition_point(|range| range.start <= *values.start());
    let end = ranges.partition_point(|range| range.start <= *values.end());
    &ranges[behind_first - 1..end]
}

/// Some of the cells, such that no more than so many ranges start between any two of them.
fn dividing(started: Vec<Started>, most: usize) -> Vec<Started> {
    let mut between = 0;
    let divides = |one: &Started| {
        between += one.starts;
        let divides = between > most;
        if divides {
            between = 0;
        }
        divides
    };
    started.into_iter().filter(divides).collect()
}

/// The number of a cell in its stretch.
#[expect(clippy::cast_possible_truncation, reason = "14 bits of it")]
const fn narrow(cell: u64) -> u16 {
    cell as u16
}

#[cfg(test)]
mod tests;
