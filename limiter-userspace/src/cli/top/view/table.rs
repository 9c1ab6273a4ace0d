//! A table with columns that fit the screen.

use ratatui::{
    Frame,
    layout::{Alignment, Constraint, Rect},
    text::Text,
    widgets::{Cell, Row, Table, TableState},
};

use super::palette::Palette;

/// The gap between two columns of the table, in characters.
const GAP: u16 = 2;

/// A limit's name is cut to this length before any column is left out.
const SHORTEST_NAME: u16 = 12;

pub(super) struct Column {
    title: &'static str,
    /// The sign behind the title of a sortable column. There is always room for it; it is empty unless rows are
    /// sorted by it.
    sign: Option<&'static str>,
    alignment: Alignment,
    cells: Vec<String>,
    /// Whether it has names of limits, which may be cut.
    is_name: bool,
    /// The order in which columns are left out for lack of room, the lowest first; `None`: never.
    spared: Option<u8>,
}

impl Column {
    /// Makes a column of numbers.
    pub(super) fn new(title: &'static str, cells: Vec<String>) -> Self {
        Self {
            title,
            sign: None,
            alignment: Alignment::Right,
            cells,
            is_name: false,
            spared: None,
        }
    }

    pub(super) fn of_limits(cells: Vec<String>) -> Self {
        Self {
            is_name: true,
            ..Self::new("limit", cells).left()
        }
    }

    pub(super) fn left(self) -> Self {
        Self {
            alignment: Alignment::Left,
            ..self
        }
    }

    pub(super) fn signed(self, sign: &'static str) -> Self {
        Self {
            sign: Some(sign),
            ..self
        }
    }

    pub(super) fn spared(self, turn: u8) -> Self {
        Self {
            spared: Some(turn),
            ..self
        }
    }

    /// Returns the width of its widest cell, or of its title with the sign.
    fn width(&self) -> u16 {
        let cells = self.cells.iter().map(|cell| cell.chars().count());
        let title = self.title.len() + usize::from(self.sign.is_some());
        let widest = cells.max().unwrap_or(0).max(title);
        u16::try_from(widest).unwrap_or(u16::MAX)
    }

    /// Returns its least width.
    fn least(&self) -> u16 {
        if self.is_name {
            self.width().min(SHORTEST_NAME)
        } else {
            self.width()
        }
    }
}

/// Draws the columns that fit, with the selected row in view; `None`: no row is selectable.
pub(super) fn draw(
    frame: &mut Frame,
    area: Rect,
    columns: Vec<Column>,
    selected: impl Into<Option<usize>>,
    palette: &Palette,
) {
    let columns = fitting(columns, area.width);
    let header = columns.iter().map(|column| {
        let title = format!("{}{}", column.title, column.sign.unwrap_or_default());
        aligned(title, column.alignment)
    });
    let header = Row::new(header).style(palette.heading);
    let rows = columns.iter().map(|column| column.cells.len()).max();
    let lines = (0..rows.unwrap_or(0)).map(|row| {
        let cells = columns.iter();
        Row::new(cells.map(|column| aligned(column.cells[row].as_str(), column.alignment)))
    });
    let widths = columns
        .iter()
        .map(|column| Constraint::Length(column.width()));
    let table = Table::new(lines, widths)
        .header(header)
        .column_spacing(GAP)
        .row_highlight_style(palette.selected);
    let mut state = TableState::default().with_selected(selected);
    frame.render_stateful_widget(table, area, &mut state);
}

/// Returns the columns that fit, with names cut to the remaining width.
fn fitting(mut columns: Vec<Column>, width: u16) -> Vec<Column> {
    let sum = |columns: &[Column], width_of: fn(&Column) -> u16| -> u16 {
        let widths = columns.iter().map(|column| width_of(column) + GAP);
        widths.sum::<u16>().saturating_sub(GAP)
    };
    while sum(&columns, Column::least) > width {
        let spared = columns.iter().enumerate();
        let spared = spared.filter_map(|(index, column)| Some((column.spared?, index)));
        let Some((_, index)) = spared.min() else {
            break;
        };
        columns.remove(index);
    }
    let excess = sum(&columns, Column::width).saturating_sub(width);
    for column in columns.iter_mut().filter(|column| column.is_name) {
        let room = column.width().saturating_sub(excess).max(column.least());
        for cell in &mut column.cells {
            cut(cell, room.into());
        }
    }
    columns
}

/// Cuts a text to this many characters, ending in `…`.
fn cut(text: &mut String, characters: usize) {
    if text.chars().count() > characters {
        let kept = text.chars().take(characters.saturating_sub(1));
        *text = kept.chain(['…']).collect();
    }
}

fn aligned<'c>(text: impl Into<Text<'c>>, alignment: Alignment) -> Cell<'c> {
    Cell::new(text.into().alignment(alignment))
}
