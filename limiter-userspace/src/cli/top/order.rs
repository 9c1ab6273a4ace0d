//! The order of the rows.

use std::cmp::{Ordering, Reverse};

use clap::ValueEnum;

use super::rates::Row;

/// The column by which rows are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Column {
    /// Drops per second
    Rate,
    /// Drops in all
    Drops,
    /// When the last drop was
    LastDrop,
    /// The limit's name
    Limit,
    /// The address or the range
    Id,
}

impl Column {
    /// Returns the next column; after the last comes the first.
    const fn next(self) -> Self {
        match self {
            Self::Rate => Self::Drops,
            Self::Drops => Self::LastDrop,
            Self::LastDrop => Self::Limit,
            Self::Limit => Self::Id,
            Self::Id => Self::Rate,
        }
    }
}

/// A column and a direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    pub(super) column: Column,
    /// Whether the fastest, most, latest or alphabetically first row is at the bottom, not on top.
    pub(super) reversed: bool,
}

impl Order {
    /// Sorts by a column in its usual direction.
    pub(super) const fn by(column: Column) -> Self {
        Self {
            column,
            reversed: false,
        }
    }

    pub(super) const fn next(self) -> Self {
        Self::by(self.column.next())
    }

    pub(super) const fn reverse(self) -> Self {
        Self {
            reversed: !self.reversed,
            ..self
        }
    }

    /// Compares two rows. Further columns break ties, so that the order is stable over time.
    pub(super) fn compare(self, one: &Row, other: &Row) -> Ordering {
        let by_column = match self.column {
            Column::Rate => rate(other).total_cmp(&rate(one)),
            Column::Drops => other.offender.drops.cmp(&one.offender.drops),
            Column::LastDrop => {
                let ago = |row: &Row| row.offender.last_drop_ago_ns;
                ago(one).cmp(&ago(other))
            }
            Column::Limit => one.offender.dropper().cmp(&other.offender.dropper()),
            Column::Id => one.addresses.cmp(&other.addresses),
        };
        let by_column = if self.reversed {
            by_column.reverse()
        } else {
            by_column
        };
        by_column.then_with(|| rest(one).cmp(&rest(other)))
    }
}

/// Returns the rate; an unknown one sorts below all known ones.
fn rate(row: &Row) -> f64 {
    row.drops_per_second.unwrap_or(-1.0)
}

fn rest(row: &Row) -> impl Ord + '_ {
    (
        Reverse(row.offender.drops),
        row.offender.dropper(),
        row.addresses,
    )
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            rates::Rates,
            testing::{first_dropped, offender, snapshot},
        },
        *,
    };

    #[test]
    fn each_column_from_both_ends() {
        let mut rates = Rates::default();
        let before = [
            offender("B", "10.0.0.9", 500),
            offender("A", "10.0.0.10", 0),
        ];
        rates.advance(snapshot(0, [0, 0], before));
        let mut late = offender("C", "2001:db8::1", 400);
        late.last_drop_ago_ns = 9;
        let now = [
            offender("B", "10.0.0.9", 510),
            offender("A", "10.0.0.10", 20),
            late,
            first_dropped("A", "10.0.0.9", 15, 0),
        ];
        let mut rows = rates.advance(snapshot(1, [0, 0], now)).offenders;
        let mut check = |column, expected: [u64; 4], reversed: [u64; 4]| {
            let order = Order::by(column);
            for (order, expected) in [(order, expected), (order.reverse(), reversed)] {
                rows.sort_by(|one, other| order.compare(one, other));
                let drops: Vec<_> = rows.iter().map(|row| row.offender.drops).collect();
                assert_eq!(drops, expected, "{order:?}");
            }
        };
        check(Column::Rate, [20, 15, 510, 400], [400, 510, 15, 20]);
        check(Column::Drops, [510, 400, 20, 15], [15, 20, 400, 510]);
        // Rows that are equal in the column keep their order.
        check(Column::LastDrop, [510, 20, 15, 400], [400, 510, 20, 15]);
        check(Column::Limit, [20, 15, 510, 400], [400, 510, 20, 15]);
        check(Column::Id, [510, 15, 20, 400], [400, 20, 510, 15]);
    }

    #[test]
    fn columns_come_round() {
        let mut order = Order::by(Column::Rate).reverse();
        for _ in Column::value_variants() {
            order = order.next();
            assert!(!order.reversed);
        }
        assert_eq!(order.column, Column::Rate);
    }
}
