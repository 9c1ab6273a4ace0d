//! The table of offenders, and the line with the user's choices.

use ratatui::{
    Frame,
    layout::{Alignment, Constraint, Rect},
    text::Text,
    widgets::{Cell, Paragraph, Row as TableRow, Table, TableState},
};

use super::{
    super::{
        model::{Model, Page},
        order::{Column as SortColumn, Order},
        rates::Row,
    },
    palette::Palette,
};
use crate::{
    cli::render::{ago, at_least, count},
    protocol::Grouping,
};

/// The gap between two columns of the table, in characters.
const GAP: u16 = 2;

/// A limit's name is cut to this length before any column is left out.
const SHORTEST_NAME: u16 = 12;

/// Draws the table with the selected row in view.
pub(super) fn draw(frame: &mut Frame, area: Rect, model: &Model, palette: &Palette) {
    let rows = model.rows();
    if rows.is_empty() {
        let text = match &model.sample {
            None => "",
            Some(sample) if sample.offenders.is_empty() => "Nobody is dropped.",
            Some(_) => "The filter hides all of them.",
        };
        frame.render_widget(Paragraph::new(text), area);
        return;
    }
    let columns = fitting(columns(model, &rows), area.width);
    let header = columns.iter().map(|column| {
        let sign = match column.sorts {
            Some(sorts) if sorts == model.order.column => arrow(model.order),
            _ => "",
        };
        aligned(format!("{}{sign}", column.title), column.alignment)
    });
    let header = TableRow::new(header).style(palette.heading);
    let lines = (0..rows.len()).map(|row| {
        let cells = columns.iter();
        TableRow::new(cells.map(|column| aligned(column.cells[row].as_str(), column.alignment)))
    });
    let widths = columns
        .iter()
        .map(|column| Constraint::Length(column.width()));
    let table = Table::new(lines, widths)
        .header(header)
        .column_spacing(GAP)
        .row_highlight_style(palette.selected);
    let mut state = TableState::default().with_selected(model.selected());
    frame.render_stateful_widget(table, area, &mut state);
}

/// The line below the table: how it is grouped and filtered, and how much that hides.
pub(super) fn choices<'m>(model: &'m Model, palette: &Palette) -> Paragraph<'m> {
    if matches!(model.page, Page::Filter) {
        return Paragraph::new(format!("filter: {}▏", model.filter));
    }
    let Some(sample) = &model.sample else {
        return Paragraph::default();
    };
    let mut parts = vec![format!("by {}", title_of(model.by))];
    parts.extend(model.limit.as_ref().map(|limit| format!("limit {limit}")));
    if !model.filter.is_empty() {
        let (shown, all) = (model.rows().len() as u64, sample.offenders.len() as u64);
        let (shown, all) = (count(shown), count(all));
        parts.push(format!("filter {}: {shown} of {all}", model.filter));
    }
    parts.push(format!("{} remembered", count(sample.remembered)));
    if sample.lower_bound {
        let (forgotten, skipped) = (count(sample.forgotten), count(sample.skipped));
        parts.push(format!("{forgotten} forgotten, {skipped} drops skipped"));
    }
    Paragraph::new(parts.join(" · ")).style(palette.aside)
}

/// Formats a rate in packets per second.
pub(super) fn rate(per_second: Option<f64>) -> String {
    match per_second {
        None => "–".to_owned(),
        Some(rate) if rate > 0.0 && rate < 10.0 => format!("{rate:.1}"),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "no rate is negative, nor as many as u64 counts"
        )]
        Some(rate) => count(rate.round() as u64),
    }
}

struct Column {
    title: &'static str,
    /// The sort column that it shows.
    sorts: Option<SortColumn>,
    alignment: Alignment,
    cells: Vec<String>,
    /// Whether it is left out for lack of room, and in which order: the lowest first.
    spared: Option<u8>,
}

impl Column {
    fn new(title: &'static str, cells: Vec<String>) -> Self {
        Self {
            title,
            sorts: None,
            alignment: Alignment::Right,
            cells,
            spared: None,
        }
    }

    fn left(self) -> Self {
        Self {
            alignment: Alignment::Left,
            ..self
        }
    }

    fn sorted_by(self, column: SortColumn) -> Self {
        Self {
            sorts: Some(column),
            ..self
        }
    }

    fn spared(self, turn: u8) -> Self {
        Self {
            spared: Some(turn),
            ..self
        }
    }

    fn is_name(&self) -> bool {
        self.sorts == Some(SortColumn::Limit)
    }

    /// Returns the width of its widest cell, or of its title with the arrow.
    fn width(&self) -> u16 {
        let cells = self.cells.iter().map(|cell| cell.chars().count());
        let title = self.title.len() + usize::from(self.sorts.is_some());
        let widest = cells.max().unwrap_or(0).max(title);
        u16::try_from(widest).unwrap_or(u16::MAX)
    }

    /// Returns the least width it needs.
    fn least(&self) -> u16 {
        if self.is_name() {
            self.width().min(SHORTEST_NAME)
        } else {
            self.width()
        }
    }
}

fn columns(model: &Model, rows: &[&Row]) -> Vec<Column> {
    let lower_bound = model
        .sample
        .as_ref()
        .is_some_and(|sample| sample.lower_bound);
    let cells = |text: &dyn Fn(&Row) -> String| rows.iter().map(|row| text(row)).collect();
    let mut columns = vec![
        Column::new("limit", cells(&|row| row.offender.dropper()))
            .sorted_by(SortColumn::Limit)
            .left(),
        Column::new(title_of(model.by), cells(&|row| row.offender.id.clone()))
            .sorted_by(SortColumn::Id)
            .left(),
    ];
    if model.by == Grouping::Range {
        let addresses = cells(&|row| count(row.offender.addresses));
        columns.push(Column::new("addresses", addresses).spared(1));
    }
    columns.extend([
        Column::new("drops/s", cells(&|row| rate(row.drops_per_second)))
            .sorted_by(SortColumn::Rate),
        Column::new(
            "drops",
            cells(&|row| at_least(row.offender.drops, lower_bound)),
        )
        .sorted_by(SortColumn::Drops),
        Column::new(
            "last drop",
            cells(&|row| ago(row.offender.last_drop_ago_ns)),
        )
        .sorted_by(SortColumn::LastDrop)
        .spared(0),
    ]);
    columns
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
    for column in columns.iter_mut().filter(|column| column.is_name()) {
        let room = column.width().saturating_sub(excess).max(column.least());
        for cell in &mut column.cells {
            cut(cell, room.into());
        }
    }
    columns
}

/// Cuts a text to so many characters, the last of which is then `…`.
fn cut(text: &mut String, characters: usize) {
    if text.chars().count() > characters {
        let kept = text.chars().take(characters.saturating_sub(1));
        *text = kept.chain(['…']).collect();
    }
}

const fn title_of(by: Grouping) -> &'static str {
    match by {
        Grouping::Address => "address",
        Grouping::Range => "range",
    }
}

/// `▼` for the usual direction.
const fn arrow(order: Order) -> &'static str {
    if order.reversed { "▲" } else { "▼" }
}

fn aligned<'c>(text: impl Into<Text<'c>>, alignment: Alignment) -> Cell<'c> {
    Cell::new(text.into().alignment(alignment))
}
