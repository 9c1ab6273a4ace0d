//! How a node divides its values into cells, and the cells into stretches.

use std::ops::RangeInclusive;

use limiter_common::policy::{Node, Stretch};

use super::Range;

/// The least average number of starts per stretch of a node.
const STARTS_IN_STRETCH: usize = 4;

/// One of this many starts may be in a crowded stretch, to make the other stretches fuller.
const CROWDED: usize = 16;

/// Cells of `1 << grain` values each, in stretches of `1 << bits` cells each.
pub(super) struct Grid {
    base: u128,
    grain: u32,
    bits: u32,
    /// The number of the last cell.
    last: u64,
}

/// A cell in which ranges start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StartCell {
    /// Its number.
    pub(super) cell: u64,
    /// The number of ranges that start in it. A range that starts at the cell's end counts, too.
    pub(super) starts: usize,
}

impl Grid {
    /// Returns the grid for these values and the ranges that start among them: at least one, none at the
    /// first value.
    ///
    /// A full stretch takes little memory per start, but an overfull one needs its own nodes. So choose the
    /// longest stretches that leave few of them crowded.
    pub(super) fn new(values: &RangeInclusive<u128>, starts: &[Range]) -> Self {
        let all = starts.iter().fold(0, |all, range| all | range.start);
        let exact = all.trailing_zeros();
        let of = |shift| Self::with_stretches_of(shift, exact, values, starts);
        let span = starts[starts.len() - 1].start - starts[0].start;
        let shortest = |stretches: usize| {
            let bits = u128::BITS - (span / stretches as u128).leading_zeros();
            (exact.max(bits.saturating_sub(1))..=u128::BITS)
                .map(of)
                .find(|grid| grid.stretches() <= stretches)
                .expect("all values are one stretch, if it is long enough")
        };
        let one = shortest(1);
        if one.crowded(starts) == 0 {
            return one;
        }
        let mut grid = shortest((starts.len() / STARTS_IN_STRETCH).max(1));
        let most = grid.crowded(starts) + starts.len() / CROWDED;
        if most >= starts.len() {
            return one;
        }
        while grid.stretches() > 1 {
            let longer = of(grid.grain + grid.bits + 1);
            if longer.crowded(starts) > most {
                break;
            }
            grid = longer;
        }
        grid
    }

    /// Returns the grid with stretches of `1 << shift` values each. All starts are multiples of `1 << exact`,
    /// so smaller cells would distinguish nothing more.
    fn with_stretches_of(
        shift: u32,
        exact: u32,
        values: &RangeInclusive<u128>,
        starts: &[Range],
    ) -> Self {
        let (first, last) = (starts[0].start, starts[starts.len() - 1].start);
        let grain = shift.saturating_sub(Stretch::BITS.into()).max(exact);
        // The first cell also takes the values before the grid, and the last cell the values after it. So no
        // range may start in them, unless there are no such values.
        let cell = first >> grain << grain;
        let base = if cell <= *values.start() {
            cell
        } else {
            cell - (1 << grain)
        };
        let grid = Self {
            base,
            grain,
            bits: shift - grain,
            last: u64::MAX,
        };
        Self {
            last: (grid.cell(last).saturating_add(1)).min(grid.cell(*values.end())),
            ..grid
        }
    }

    /// Returns the node; its first stretch has the index `first`.
    pub(super) fn node(&self, first: u32) -> Node {
        let (high, low) = halves(self.base);
        Node {
            high,
            low,
            last: self.last,
            first,
            grain: narrow(self.grain),
            bits: narrow(self.bits),
        }
    }

    pub(super) fn stretches(&self) -> usize {
        usize::try_from(self.last >> self.bits).map_or(usize::MAX, |last| last.saturating_add(1))
    }

    pub(super) const fn first_cell(&self, stretch: usize) -> u64 {
        (stretch as u64) << self.bits
    }

    pub(super) fn values(&self, cell: u64) -> RangeInclusive<u128> {
        let first = self.base + (u128::from(cell) << self.grain);
        first..=first + ((1 << self.grain) - 1)
    }

    /// Returns the part of the values that is in a stretch.
    pub(super) fn stretch(
        &self,
        values: &RangeInclusive<u128>,
        number: usize,
    ) -> RangeInclusive<u128> {
        let from = match number {
            0 => *values.start(),
            _ => *self.values(self.first_cell(number)).start(),
        };
        let to = if number + 1 == self.stretches() {
            *values.end()
        } else {
            *self.values(self.first_cell(number + 1)).start() - 1
        };
        from..=to
    }

    /// Returns the cells with starts. A range that starts at the end of such a cell needs no cell of its own.
    pub(super) fn started(&self, starts: &[Range]) -> Vec<StartCell> {
        let mut started: Vec<StartCell> = Vec::new();
        for in_cell in starts.chunk_by(|one, other| self.cell(one.start) == self.cell(other.start))
        {
            let (cell, starts) = (self.cell(in_cell[0].start), in_cell.len());
            let with_the_cell = starts == 1 && in_cell[0].start == *self.values(cell).start();
            match started.last_mut() {
                Some(last) if with_the_cell && last.cell + 1 == cell => last.starts += 1,
                _ => started.push(StartCell { cell, starts }),
            }
        }
        started
    }

    /// Returns the number of starts in stretches that lack room for all their cells.
    fn crowded(&self, starts: &[Range]) -> usize {
        let stretch = |range: &Range| self.cell(range.start) >> self.bits;
        starts
            .chunk_by(|one, other| stretch(one) == stretch(other))
            .filter(|inside| self.started(inside).len() > Stretch::CELLS)
            .map(<[Range]>::len)
            .sum()
    }

    /// Returns the number of a value's cell; the value is not before the first cell.
    fn cell(&self, value: u128) -> u64 {
        u64::try_from((value - self.base) >> self.grain).unwrap_or(u64::MAX)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "splits the value into its halves"
)]
pub(super) const fn halves(value: u128) -> (u64, u64) {
    ((value >> 64) as u64, value as u64)
}

#[expect(clippy::cast_possible_truncation, reason = "at most 128")]
const fn narrow(bits: u32) -> u16 {
    bits as u16
}
