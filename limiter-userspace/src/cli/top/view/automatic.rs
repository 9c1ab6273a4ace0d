//! Automatic rates in force, above the offenders.

use limiter_protocol::AutomaticRate;
use limiter_report::{
    capacity::last_overload,
    render::{ago, count},
};
use ratatui::text::{Line, Span};

use super::{
    super::{model::Model, rates},
    palette::Palette,
    room,
};

/// The width of the names: with rates of six digits, a whole line has 80 columns.
const NAMES: usize = 22;

/// Returns a line for each automatic rate, as far as a screen of this height has room.
pub(super) fn lines(model: &Model, height: u16, palette: &Palette) -> Vec<Line<'static>> {
    let samples = model.sample.iter();
    let rates = samples.flat_map(|sample| rates::automatic(&sample.status));
    rates
        .take(room::limits(height))
        .map(|(limit, rate)| line(limit, rate, palette))
        .collect()
}

fn line(limit: &str, automatic: &AutomaticRate, palette: &Palette) -> Line<'static> {
    let name: String = limit.chars().take(NAMES).collect();
    let mut line = Line::raw(format!("{name:<NAMES$}  auto {}/s", count(automatic.rate)));
    if let Some(error) = &automatic.error {
        let reported = format!("  NOT FOUND: {error}");
        line.push_span(Span::styled(reported, palette.alarm));
        return line;
    }
    let (floor, ceiling) = (count(automatic.floor), count(automatic.ceiling));
    let bounds = format!("  from {floor} to {ceiling}");
    line.push_span(Span::styled(bounds, palette.aside));
    if let Some(last) = last_overload(automatic) {
        line.push_span(format!("  overload {}", ago(last.ago_ns)));
    }
    line
}
