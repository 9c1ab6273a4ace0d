//! How a node divides its values: into cells, and those into stretches.

use std::ops::RangeInclusive;

use limiter_common::policy::{Node, Stretch};

use super::Range;

/// As many starts as there are for each stretch of a node, or more.
const STARTS_IN_STRETCH: usize = 4;

/// Of so many starts, one may be in a crowded stretch so that others are in fuller ones.
const CROWDED: usize = 16;

/// The pieces that a stretch has room for: from its first cell on, and from each start on.
pub(super) const MOST_PIECES: usize = Stretch::STARTS + 1;

/// Cells of `1 << grain` values each, in stretches of `1 << bits` cells each.
pub(super) struct Grid {
    base: u128,
    grain: u32,
    bits: u32,
    /// The number of the last cell.
    last: u64,
}

/// Cells that need not be told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The first of them.
    pub(super) cell: u64,
    /// How many ranges start in them.
    pub(super) starts: usize,
}

impl Grid {
    /// For these values, among which ranges start at these; one at least, none at the first.
    ///
    /// A stretch with many starts takes little memory for each, and one with too many takes
    /// nodes of its own: the longest stretches of which few are crowded.
    pub(super) fn new(values: &RangeInclusive<u128>, starts: &[Range]) -> Self {
        let shift = |shift| Self::with_stretches_of(shift, values, starts);
        let span = starts[starts.len() - 1].start - starts[0].start;
        // No shorter ones are enough.
        let enough = |stretches: usize| {
            let bits = u128::BITS - (span / stretches as u128).leading_zeros();
            let shifts = bits.saturating_sub(1)..=u128::BITS;
            shifts
                .map(shift)
                .find(|grid| grid.stretches() <= stretches)
                .expect("all values are one stretch, if it is long enough")
        };
        let one = enough(1);
        if one.crowded(starts) == 0 {
            return one;
        }
        let mut grid = enough((starts.len() / STARTS_IN_STRETCH).max(1));
        let most = grid.crowded(starts) + starts.len() / CROWDED;
        if most >= starts.len() {
            return one;
        }
        while grid.stretches() > 1 {
            let longer = shift(grid.grain + grid.bits + 1);
            if longer.crowded(starts) > most {
                break;
            }
            grid = longer;
        }
        grid
    }

    /// With stretches of `1 << shift` values each.
    fn with_stretches_of(shift: u32, values: &RangeInclusive<u128>, starts: &[Range]) -> Self {
        let (first, last) = (starts[0].start, starts[starts.len() - 1].start);
        let grain = shift.saturating_sub(Stretch::BITS.into());
        // Nothing starts in the first cell, where values before it are, nor in the last one;
        // unless there are none before it, or behind it.
        let base = (first >> grain << grain).saturating_sub(1 << grain);
        let grid = Self {
            base: base.max(*values.start()),
            grain,
            bits: shift - grain,
            last: u64::MAX,
        };
        Self {
            last: (grid.cell(last).saturating_add(1)).min(grid.cell(*values.end())),
            ..grid
        }
    }

    /// The node, whose first stretch stands at `first`.
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

    /// How many stretches there are.
    pub(super) fn stretches(&self) -> usize {
        usize::try_from(self.last >> self.bits).map_or(usize::MAX, |last| last.saturating_add(1))
    }

    /// The first cell of a stretch.
    pub(super) const fn first_cell(&self, stretch: usize) -> u64 {
        (stretch as u64) << self.bits
    }

    /// The first value in a cell.
    pub(super) const fn value(&self, cell: u64) -> u128 {
        self.base + ((cell as u128) << self.grain)
    }

    /// Those of the values that are in a stretch.
    pub(super) fn stretch(
        &self,
        values: &RangeInclusive<u128>,
        number: usize,
    ) -> RangeInclusive<u128> {
        let from = match number {
            0 => *values.start(),
            _ => self.value(self.first_cell(number)),
        };
        let to = if number + 1 == self.stretches() {
            *values.end()
        } else {
            self.value(self.first_cell(number + 1)) - 1
        };
        from..=to
    }

    /// The pieces of the stretch with this first cell, as small as they may be: a cell in which
    /// ranges start, and not just one with it, is by itself.
    pub(super) fn pieces(&self, first: u64, starts: &[Range]) -> Vec<Piece> {
        let end = first + (1 << self.bits);
        let mut pieces = vec![Piece {
            cell: first,
            starts: 0,
        }];
        for in_cell in starts.chunk_by(|one, other| self.cell(one.start) == self.cell(other.start)) {
            let cell = self.cell(in_cell[0].start);
            match pieces.last_mut() {
                Some(last) if last.cell == cell => last.starts = in_cell.len(),
                _ => pieces.push(Piece {
                    cell,
                    starts: in_cell.len(),
                }),
            }
            let with_the_cell = in_cell.len() == 1 && in_cell[0].start == self.value(cell);
            if !with_the_cell && cell + 1 < end && cell < self.last {
                pieces.push(Piece {
                    cell: cell + 1,
                    starts: 0,
                });
            }
        }
        pieces
    }

    /// How many of the starts are in stretches that have more pieces than there is room for.
    fn crowded(&self, starts: &[Range]) -> usize {
        let first_cell = |start: &Range| self.cell(start.start) >> self.bits << self.bits;
        starts
            .chunk_by(|one, other| first_cell(one) == first_cell(other))
            .filter(|inside| self.pieces(first_cell(&inside[0]), inside).len() > MOST_PIECES)
            .map(<[Range]>::len)
            .sum()
    }

    /// The number of the cell of a value, which is not before the first one.
    fn cell(&self, value: u128) -> u64 {
        u64::try_from((value - self.base) >> self.grain).unwrap_or(u64::MAX)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "takes the two halves apart"
)]
pub(super) const fn halves(value: u128) -> (u64, u64) {
    ((value >> 64) as u64, value as u64)
}

#[expect(clippy::cast_possible_truncation, reason = "no more than 128")]
const fn narrow(bits: u32) -> u16 {
    bits as u16
}
