//! The table of offenders, and the line with the user's choices.

use limiter_protocol::Grouping;
use limiter_report::render::{ago, at_least, count};
use ratatui::{Frame, layout::Rect, widgets::Paragraph};

use super::{
    super::{
        model::{Model, Page},
        order::{Column as SortColumn, Order},
        rates::Row,
        subject::Subject,
    },
    palette::Palette,
    table::{self, Column},
};

/// Draws the table with the selected row in view.
pub(super) fn draw(frame: &mut Frame, area: Rect, model: &Model, palette: &Palette) {
    let rows = model.rows();
    if rows.is_empty() {
        let text = match &model.sample {
            None => "",
            Some(sample) if sample.offenders.is_empty() => "No drops.",
            Some(_) => "The filter hides all of them.",
        };
        frame.render_widget(Paragraph::new(text), area);
        return;
    }
    table::draw(
        frame,
        area,
        columns(model, &rows),
        model.selected(),
        palette,
    );
}

/// Returns the line below the table: grouping, filter, and the number of hidden rows.
pub(super) fn choices<'m>(model: &'m Model, palette: &Palette) -> Paragraph<'m> {
    if matches!(model.page, Page::Filter) {
        return Paragraph::new(format!("filter: {}▏", model.filter));
    }
    let Some(sample) = &model.sample else {
        return Paragraph::default();
    };
    if model.subject != Subject::Offenders {
        let filter = (!model.filter.is_empty()).then(|| format!(" · filter {}", model.filter));
        let reported = format!("{}{}", model.subject.name(), filter.unwrap_or_default());
        return Paragraph::new(reported).style(palette.aside);
    }
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

fn columns(model: &Model, rows: &[&Row]) -> Vec<Column> {
    let lower_bound = model
        .sample
        .as_ref()
        .is_some_and(|sample| sample.lower_bound);
    let cells = |text: &dyn Fn(&Row) -> String| rows.iter().map(|row| text(row)).collect();
    let sign = |column| {
        if column == model.order.column {
            arrow(model.order)
        } else {
            ""
        }
    };
    let mut columns = vec![
        Column::of_limits(cells(&|row| row.offender.dropper())).signed(sign(SortColumn::Limit)),
        Column::new(title_of(model.by), cells(&|row| row.offender.id.clone()))
            .signed(sign(SortColumn::Id))
            .left(),
    ];
    if model.by == Grouping::Range {
        let addresses = cells(&|row| count(row.offender.addresses));
        columns.push(Column::new("addresses", addresses).spared(1));
    }
    columns.extend([
        Column::new("drops/s", cells(&|row| rate(row.drops_per_second)))
            .signed(sign(SortColumn::Rate)),
        Column::new(
            "drops",
            cells(&|row| at_least(row.offender.drops, lower_bound)),
        )
        .signed(sign(SortColumn::Drops)),
        Column::new(
            "last drop",
            cells(&|row| ago(row.offender.last_drop_ago_ns)),
        )
        .signed(sign(SortColumn::LastDrop))
        .spared(0),
    ]);
    columns
}

const fn title_of(by: Grouping) -> &'static str {
    match by {
        Grouping::Address => "address",
        Grouping::Range => "range",
        Grouping::Name => "name",
    }
}

/// Returns `▼` for the usual direction.
const fn arrow(order: Order) -> &'static str {
    if order.reversed { "▲" } else { "▼" }
}
