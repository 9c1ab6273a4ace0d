//! The tables of limits: passed and refused packets, also by standing.

use limiter_policy::{policy::Mode, text::period};
use limiter_protocol::counted_name;
use limiter_report::{render::count, standing::shortage_line};
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    text::{Line, Span},
    widgets::Paragraph,
};

use super::{
    super::{limits::LimitRates, model::Model},
    offenders::rate,
    palette::Palette,
    table::{self, Column},
};

/// Draws each limit's rate, and its passed and refused packets.
pub(super) fn draw(frame: &mut Frame, area: Rect, model: &Model, palette: &Palette) {
    let limits = model.limits();
    if limits.is_empty() {
        return nothing(frame, area, model, "There is no limit.");
    }
    let cells = |text: &dyn Fn(&LimitRates) -> String| {
        let of_each = limits.iter().map(|(_, limit)| text(limit));
        of_each.collect::<Vec<_>>()
    };
    let mut columns = vec![Column::of_limits(names(&limits))];
    if limits.iter().any(|(_, limit)| limit.mode != Mode::Enforce) {
        columns.push(Column::new("mode", cells(&|limit| limit.mode.name().to_owned())).left());
    }
    columns.extend([
        Column::new("grants", cells(&granted)).spared(1),
        Column::new(
            "passed/s",
            cells(&|limit| rate(limit.passed_packets_per_second)),
        ),
        Column::new(
            "refused/s",
            cells(&|limit| rate(limit.refused_packets_per_second)),
        ),
        Column::new("refused", cells(&|limit| count(limit.refused_packets))).spared(0),
    ]);
    table::draw(frame, area, columns, model.selected(), palette);
}

pub(super) fn draw_standings(frame: &mut Frame, area: Rect, model: &Model, palette: &Palette) {
    let standing = model
        .sample
        .as_ref()
        .and_then(|sample| sample.standing.as_ref());
    let lines = model.standings();
    let (Some(standing), false) = (standing, lines.is_empty()) else {
        return nothing(
            frame,
            area,
            model,
            "No limit reserves anything by standing.",
        );
    };
    let shortage = standing.shortage.as_ref();
    let style = if shortage.is_some() {
        palette.alarm
    } else {
        palette.aside
    };
    let area = headed(frame, area, Span::styled(shortage_line(shortage), style));
    let columns = vec![
        Column::of_limits(names(&lines)),
        Column::new(
            "standing",
            lines
                .iter()
                .map(|(_, line)| counted_name(line.standing).to_owned())
                .collect(),
        )
        .left(),
        Column::new(
            "passed/s",
            lines
                .iter()
                .map(|(_, line)| rate(line.passed_packets_per_second))
                .collect(),
        ),
        Column::new(
            "refused/s",
            lines
                .iter()
                .map(|(_, line)| rate(line.refused_packets_per_second))
                .collect(),
        ),
    ];
    table::draw(frame, area, columns, model.selected(), palette);
}

pub(super) fn names<T>(lines: &[(&str, T)]) -> Vec<String> {
    lines.iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// Describes the rate of each key without an override.
pub(super) fn granted(limit: &LimitRates) -> String {
    if let Some(connections) = limit.connections {
        return count(connections);
    }
    limit.rate.map_or_else(
        || "–".to_owned(),
        |rate| {
            format!(
                "{} {} per {}",
                count(rate.count),
                limit.cost,
                period(rate.period_ns)
            )
        },
    )
}

/// Draws a line above the table; returns the area below it.
pub(super) fn headed<'l>(frame: &mut Frame, area: Rect, line: impl Into<Line<'l>>) -> Rect {
    let [head, below] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    frame.render_widget(Paragraph::new(line.into()), head);
    below
}

/// Shows why there is no line.
pub(super) fn nothing(frame: &mut Frame, area: Rect, model: &Model, why: &'static str) {
    let text = match &model.sample {
        None => "",
        Some(_) if !model.filter.is_empty() => "The filter hides all of them, if there are any.",
        Some(_) => why,
    };
    frame.render_widget(Paragraph::new(text), area);
}
