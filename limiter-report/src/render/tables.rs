//! Lays out tables, also for narrow terminals.

use std::{
    env,
    io::{self, IsTerminal as _},
};

use comfy_table::{CellAlignment, ColumnConstraint, Table, Width, presets::NOTHING};

/// The blanks between two columns.
pub const GAP: usize = 2;

/// The least width of a text that is wrapped.
const LEAST_TEXT: usize = 20;

/// Lays out a table with a header; the columns in `right` are right-aligned.
pub fn table<const N: usize, const R: usize>(
    header: [&str; N],
    right: [usize; R],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    table_without(&[], header, right, rows)
}

/// Like [`table`], without the columns in `hidden`.
///
/// On a terminal that is too narrow, the last column is wrapped if it is a text. Otherwise the columns are
/// split into several tables, one below the other, each beginning with the first column.
pub fn table_without<const N: usize, const R: usize>(
    hidden: &[usize],
    header: [&str; N],
    right: [usize; R],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let rows: Vec<_> = rows.into_iter().collect();
    within(terminal_width(), hidden, header, right, &rows)
}

/// Returns the width of the terminal in columns; `None`: there is no limit.
#[must_use]
pub fn terminal_width() -> Option<usize> {
    let said = env::var("COLUMNS").ok().and_then(|said| said.parse().ok());
    let terminal = || {
        let (width, _) = crossterm::terminal::size().ok()?;
        io::stdout().is_terminal().then(|| usize::from(width))
    };
    said.or_else(terminal).filter(|width| *width > 0)
}

fn within<const N: usize, const R: usize>(
    room: Option<usize>,
    hidden: &[usize],
    header: [&str; N],
    right: [usize; R],
    rows: &[[String; N]],
) -> String {
    let shown: Vec<usize> = (0..N).filter(|column| !hidden.contains(column)).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells
            .chain([header[column].chars().count()])
            .max()
            .unwrap_or(0)
    };
    let sum = |columns: &[usize]| -> usize {
        let widths: usize = columns.iter().map(|column| width(*column)).sum();
        widths + GAP * columns.len().saturating_sub(1)
    };
    let lay_out = |columns: &[usize], last: Option<usize>| one(columns, last, header, right, rows);
    let Some(room) = room.filter(|room| sum(&shown) > *room) else {
        return lay_out(&shown, None);
    };
    if let Some((last, others)) = shown.split_last()
        && !right.contains(last)
        && !others.is_empty()
    {
        let left = room.saturating_sub(sum(others) + GAP);
        if left >= LEAST_TEXT {
            return lay_out(&shown, Some(left));
        }
    }
    // A number alone does not name a row, so the second column is repeated too.
    let keys = 1 + usize::from(shown.first().is_some_and(|first| right.contains(first)));
    let (key, others) = shown.split_at(keys.min(shown.len()));
    let mut parts = vec![key.to_vec()];
    for column in others {
        let part = parts.last().map_or(&[][..], Vec::as_slice);
        let longer = [part, &[*column]].concat();
        if sum(&longer) <= room || part.len() == key.len() {
            parts.pop();
            parts.push(longer);
        } else {
            parts.push([key, &[*column]].concat());
        }
    }
    let tables = parts.iter().map(|part| lay_out(part, None));
    tables.collect::<Vec<_>>().join("\n\n")
}

/// Lays out some columns; the last one is wrapped to a width, if given.
fn one<const N: usize, const R: usize>(
    columns: &[usize],
    last: Option<usize>,
    header: [&str; N],
    right: [usize; R],
    rows: &[[String; N]],
) -> String {
    let mut table = Table::new();
    let cells = |row: &[String; N]| columns.iter().map(|column| row[*column].clone()).collect();
    let rows = rows.iter().map(cells).collect::<Vec<Vec<String>>>();
    let header: Vec<_> = columns.iter().map(|column| header[*column]).collect();
    table.load_style(NOTHING).set_header(header).add_rows(rows);
    for (index, column) in columns.iter().enumerate() {
        let Some(laid_out) = table.column_mut(index) else {
            continue;
        };
        laid_out.set_padding((0, 2));
        if right.contains(column) {
            laid_out.set_cell_alignment(CellAlignment::Right);
        }
        if let (Some(width), true) = (last, index + 1 == columns.len()) {
            let width = u16::try_from(width + GAP).unwrap_or(u16::MAX);
            laid_out.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width)));
        }
    }
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: [&str; 5] = ["limit", "id", "remaining", "retry in", "meaning"];
    const RIGHT: [usize; 2] = [2, 3];

    fn rows() -> Vec<[String; 5]> {
        [
            [
                "NewConnectionsPerIPv6Range",
                "2001:db8:1234::/48",
                "1 000",
                "0 ns",
                "it may send",
            ],
            [
                "All",
                "total",
                "0",
                "250 µs",
                "every packet is dropped until the bucket fills again",
            ],
        ]
        .map(|row| row.map(ToOwned::to_owned))
        .to_vec()
    }

    fn widest(text: &str) -> usize {
        text.lines()
            .map(|line| line.chars().count())
            .max()
            .unwrap_or(0)
    }

    /// Returns all words, to check that each is shown.
    fn words(text: &str) -> Vec<&str> {
        text.split_whitespace().collect()
    }

    #[test]
    fn a_wide_terminal_has_one_table() {
        let whole = within(None, &[], HEADER, RIGHT, &rows());
        assert_eq!(whole.lines().count(), 3);
        assert_eq!(within(Some(200), &[], HEADER, RIGHT, &rows()), whole);
        assert!(widest(&whole) > 120);
    }

    #[test]
    fn a_text_is_wrapped_where_there_is_room_for_it() {
        let wrapped = within(Some(100), &[], HEADER, RIGHT, &rows());
        assert!(widest(&wrapped) <= 100, "{wrapped}");
        assert_eq!(
            wrapped.lines().next().map(words),
            Some(words("limit id remaining retry in meaning"))
        );
        assert!(wrapped.lines().count() > 3);
    }

    #[test]
    fn a_narrow_terminal_has_several_tables() {
        for room in [80, 60] {
            let tables = within(Some(room), &[4], HEADER, RIGHT, &rows());
            assert!(widest(&tables) <= room, "{tables}");
            for word in ["limit", "2001:db8:1234::/48", "remaining", "250", "retry"] {
                assert!(tables.contains(word), "{tables}");
            }
            // Each begins with the column that names the row.
            let parts: Vec<_> = tables.split("\n\n").collect();
            let names_rows = |part: &&str| part.contains("NewConnectionsPerIPv6Range");
            assert!(parts.iter().all(names_rows), "{tables}");
        }
        let narrow = within(Some(1), &[], HEADER, RIGHT, &rows());
        assert_eq!(narrow.split("\n\n").count(), 4, "{narrow}");
    }

    #[test]
    fn a_number_does_not_name_a_row() {
        let header = ["id", "limit", "burst", "count"];
        let row = ["1", "PacketsPerIPAddress", "1 000", "2 000"].map(ToOwned::to_owned);
        let tables = within(Some(30), &[], header, [0, 2, 3], &[row]);
        let parts = tables.split("\n\n");
        assert!(parts.clone().count() > 1);
        assert!(
            parts.clone().all(|part| part.starts_with("id  limit")),
            "{tables}"
        );
    }
}
