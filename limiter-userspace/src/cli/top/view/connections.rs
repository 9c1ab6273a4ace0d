//! The limits on open connections, and the keys with the most.

use limiter_protocol::KeyStatus;
use limiter_report::render::count;
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    text::{Line, Span},
};

use super::{
    super::{limits::LimitRates, model::Model},
    limits::{granted, headed, names, nothing},
    offenders::rate,
    palette::Palette,
    table::{self, Column},
};
use crate::cli::connections::NO_LIMIT;

/// Draws the limits on connections, with open connections and waiting clients.
pub(super) fn draw(frame: &mut Frame, area: Rect, model: &Model, palette: &Palette) {
    let limits = model.limits_on_connections();
    let open = model
        .sample
        .as_ref()
        .and_then(|sample| sample.status.connections.as_ref());
    let hides_all = limits.is_empty() && model.bucket_keys().is_empty();
    let (Some(open), false) = (open, hides_all) else {
        return nothing(frame, area, model, NO_LIMIT);
    };
    let mut head = Line::raw(format!("{} open that limits count", count(open.counted)));
    if open.uncounted > 0 {
        let uncounted = format!("  {} NOT COUNTED for lack of room", count(open.uncounted));
        head.push_span(Span::styled(uncounted, palette.alarm));
    }
    if let Some(error) = &open.error {
        let error = format!("  COUNTED ONCE A SECOND: {error}");
        head.push_span(Span::styled(error, palette.alarm));
    }
    // Last, so that a narrow screen cuts this before the capitals.
    if let Some(tracked) = open.tracked {
        head.push_span(Span::raw(format!("  {} of them forwarded", count(tracked))));
    }
    let area = headed(frame, area, head);
    let cells = |text: &dyn Fn(&LimitRates) -> String| {
        let of_each = limits.iter().map(|(_, limit)| text(limit));
        of_each.collect::<Vec<_>>()
    };
    let mut columns = vec![
        Column::of_limits(names(&limits)),
        Column::new("open", cells(&|limit| known(limit.open))),
        Column::new("at once", cells(&granted)),
    ];
    if limits.iter().any(|(_, limit)| limit.waiting.is_some()) {
        let waiting = |limit: &LimitRates| known(limit.waiting);
        columns.push(Column::new("waiting", cells(&waiting)));
    }
    columns.extend([
        Column::new(
            "refused/s",
            cells(&|limit| rate(limit.refused_packets_per_second)),
        ),
        Column::new("refused", cells(&|limit| count(limit.refused_packets))),
    ]);
    // The heading, a line for each limit, and a blank line. A filter may leave only keys.
    let height = limits.len() + 2;
    let height = u16::try_from(height).unwrap_or(u16::MAX);
    let height = if limits.is_empty() { 0 } else { height };
    let [of_limits, of_keys] =
        Layout::vertical([Constraint::Length(height), Constraint::Fill(1)]).areas(area);
    table::draw(frame, of_limits, columns, model.selected(), palette);
    draw_keys(frame, of_keys, model, palette);
}

fn draw_keys(frame: &mut Frame, area: Rect, model: &Model, palette: &Palette) {
    let keys = model.bucket_keys();
    if keys.is_empty() {
        return;
    }
    let cells = |text: &dyn Fn(&KeyStatus) -> String| {
        let of_each = keys.iter().map(|key| text(key));
        of_each.collect::<Vec<_>>()
    };
    let mut columns = vec![
        Column::new("key", cells(&|key| key.id.clone())).left(),
        Column::of_limits(cells(&|key| key.limit.clone())),
        Column::new("open", cells(&|key| count(key.open))),
        Column::new("at most", cells(&|key| count(key.most))),
    ];
    if keys.iter().any(|key| key.waiting.is_some()) {
        columns.push(Column::new("waiting", cells(&|key| known(key.waiting))).spared(0));
    }
    table::draw(frame, area, columns, None, palette);
}

/// Shows a number that a limit may not have.
fn known(number: Option<u64>) -> String {
    number.map_or_else(|| "–".to_owned(), count)
}
