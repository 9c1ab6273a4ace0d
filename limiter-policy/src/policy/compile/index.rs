//! Builds the nodes that index the ranges. The look-up in `policy::search` describes the format.

mod grid;

use std::{collections::HashMap, ops::RangeInclusive};

use limiter_common::policy::{Child, Node, Stretch};

use self::grid::{Grid, StartCell};
use super::bounds::index;

/// A range of values. It ends where the dimension's next one starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    /// The first value, of up to 128 bits.
    pub(super) start: u128,
    /// The policy's value for the range: a class, or the index of a set of limits.
    pub(super) value: u32,
}

/// The child for gaps without values, such as between two adjacent cells.
const NOWHERE: Child = Child::value(0);

/// The tables of all dimensions.
#[derive(Clone, Debug, Default)]
pub(super) struct IndexTables {
    pub(super) nodes: Vec<Node>,
    pub(super) stretches: Vec<Stretch>,
    pub(super) children: Vec<Child>,
    /// The index of a stretch's first child, by its children. Many stretches have equal children if many
    /// prefixes share a few rates.
    known: HashMap<Vec<Child>, u32>,
}

impl IndexTables {
    /// Adds the ranges of a dimension, starting at 0. Returns the start of its look-up.
    pub(super) fn add(&mut self, ranges: &[Range]) -> Child {
        if ranges.is_empty() {
            return Child::UNUSED;
        }
        self.child(0..=u128::MAX, ranges)
    }

    /// Adds the starts of both families' look-ups for one name, side by side. Returns the first one's index.
    pub(super) fn add_pair(&mut self, pair: [Child; 2]) -> u32 {
        self.first_of(pair.to_vec())
    }

    /// Returns the child for some values. The first range starts at or before the first value.
    fn child(&mut self, values: RangeInclusive<u128>, ranges: &[Range]) -> Child {
        if values.is_empty() {
            return NOWHERE;
        }
        match within(ranges, &values) {
            [one] => Child::value(one.value),
            several => self.node(&values, several),
        }
    }

    fn node(&mut self, values: &RangeInclusive<u128>, ranges: &[Range]) -> Child {
        let grid = Grid::new(values, &ranges[1..]);
        let node = self.nodes.len();
        let first = self.stretches.len();
        self.nodes.push(grid.node(index(first)));
        let empty = Stretch::new(0, &[]);
        self.stretches.resize(first + grid.stretches(), empty);
        for number in 0..grid.stretches() {
            let of_stretch = grid.stretch(values, number);
            let inside = within(ranges, &of_stretch);
            self.stretches[first + number] = self.stretch(&grid, number, &of_stretch, inside);
        }
        Child::node(index(node))
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
        let mut children = Vec::with_capacity(2 * started.len() + 1);
        let mut from = *values.start();
        for StartCell { cell, .. } in &started {
            let (first, last) = grid.values(*cell).into_inner();
            children.push(self.child(from..=first.saturating_sub(1), ranges));
            children.push(self.child(first.max(from)..=last.min(*values.end()), ranges));
            from = last.saturating_add(1);
        }
        children.push(self.child(from..=*values.end(), ranges));
        let first_cell = grid.first_cell(number);
        let cells = started.iter().map(|one| narrow(one.cell - first_cell));
        let cells: Vec<_> = cells.collect();
        Stretch::new(self.first_of(children), &cells)
    }

    /// Returns the first index of these consecutive children.
    fn first_of(&mut self, children: Vec<Child>) -> u32 {
        let next = index(self.children.len());
        *self.known.entry(children).or_insert_with_key(|children| {
            self.children.extend(children);
            next
        })
    }
}

fn within<'a>(ranges: &'a [Range], values: &RangeInclusive<u128>) -> &'a [Range] {
    let behind_first = ranges.partition_point(|range| range.start <= *values.start());
    let end = ranges.partition_point(|range| range.start <= *values.end());
    &ranges[behind_first - 1..end]
}

/// Selects cells so that at most `most` ranges start between any two of them.
fn dividing(started: Vec<StartCell>, most: usize) -> Vec<StartCell> {
    let mut between = 0;
    let divides = |one: &StartCell| {
        between += one.starts;
        let divides = between > most;
        if divides {
            between = 0;
        }
        divides
    };
    started.into_iter().filter(divides).collect()
}

/// Returns the number of a cell in its stretch.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the number has at most 14 bits"
)]
const fn narrow(cell: u64) -> u16 {
    cell as u16
}

#[cfg(test)]
mod tests;
