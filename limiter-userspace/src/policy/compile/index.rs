//! The nodes in front of the ranges; what they are like stands with their look-up,
//! `policy::search`.

mod grid;

use std::{collections::HashMap, ops::RangeInclusive};

use limiter_common::policy::{Node, Slot, Stretch};

use self::grid::{Grid, MOST_PIECES, Piece};
use super::index;

/// Where a range of values starts; it ends where the next one of its dimension starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    /// The first value, of up to 128 bits.
    pub(super) start: u128,
    /// What the policy says of the values in it: a class, or where a set of limits stands.
    pub(super) value: u32,
}

/// Of the ranges of a crowded stretch, this part may be left together.
const SHARE: usize = MOST_PIECES / 2;

/// The tables of all dimensions.
#[derive(Clone, Debug, Default)]
pub(super) struct Indexed {
    pub(super) nodes: Vec<Node>,
    pub(super) stretches: Vec<Stretch>,
    pub(super) slots: Vec<Slot>,
    /// Where the slots of a stretch stand. Those of many stretches are the same: a few
    /// overrides and the default by turns.
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
    /// before, the others behind it.
    fn slot(&mut self, values: RangeInclusive<u128>, ranges: &[Range]) -> Slot {
        match ranges {
            [one] => Slot::value(one.value),
            _ => self.node(values, ranges),
        }
    }

    fn node(&mut self, values: RangeInclusive<u128>, ranges: &[Range]) -> Slot {
        let grid = Grid::new(&values, &ranges[1..]);
        let place = self.nodes.len();
        let first = self.stretches.len();
        self.nodes.push(grid.node(index(first)));
        let empty = Stretch::new(0, &[]);
        self.stretches.resize(first + grid.stretches(), empty);
        for number in 0..grid.stretches() {
            let of_stretch = grid.stretch(&values, number);
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
        let first_cell = grid.first_cell(number);
        let pieces = grid.pieces(first_cell, &ranges[1..]);
        let cells: Vec<u64> = if pieces.len() <= MOST_PIECES {
            pieces.iter().map(|piece| piece.cell).collect()
        } else {
            merged(pieces, (ranges.len() - 1).div_ceil(SHARE))
        };
        let ends = cells[1..].iter().map(|cell| grid.value(*cell) - 1);
        let mut from = *values.start();
        let mut slots = Vec::with_capacity(cells.len());
        for to in ends.chain([*values.end()]) {
            slots.push(self.slot(from..=to, within(ranges, &(from..=to))));
            from = to.wrapping_add(1);
        }
        let starts: Vec<_> = cells[1..]
            .iter()
            .map(|cell| in_stretch(cell - first_cell))
            .collect();
        Stretch::new(self.place(slots), &starts)
    }

    /// Where these slots stand, one behind the other.
    fn place(&mut self, slots: Vec<Slot>) -> u32 {
        let next = index(self.slots.len());
        let place = *self.known.entry(slots).or_insert_with_key(|slots| {
            self.slots.extend(slots);
            next
        });
        place
    }
}

/// The ranges that some of their values are in.
fn within<'a>(ranges: &'a [Range], values: &RangeInclusive<u128>) -> &'a [Range] {
    let behind_first = ranges.partition_point(|range| range.start <= *values.start());
    let end = ranges.partition_point(|range| range.start <= *values.end());
    &ranges[behind_first - 1..end]
}

/// Larger pieces, in each of which no more than so many ranges start, unless it is one cell;
/// returns the first cells. As two neighbours have more together, they are no more than fit if
/// one in [`SHARE`] may start in each.
fn merged(pieces: Vec<Piece>, most: usize) -> Vec<u64> {
    let mut merged: Vec<Piece> = Vec::new();
    for piece in pieces {
        match merged.last_mut() {
            Some(last) if last.starts + piece.starts <= most => last.starts += piece.starts,
            _ => merged.push(piece),
        }
    }
    merged.iter().map(|piece| piece.cell).collect()
}

/// The number of a cell in its stretch.
#[expect(clippy::cast_possible_truncation, reason = "15 bits of it")]
const fn in_stretch(cell: u64) -> u16 {
    cell as u16
}

#[cfg(test)]
mod tests;
