//! What sources of each standing get of the limits that reserve, above the offenders.

use limiter_common::standing::Standing;
use ratatui::text::{Line, Span};

use super::{
    super::{
        model::Model,
        rates::{StandingRate, StandingRates},
    },
    offenders::rate,
    palette::Palette,
    room,
};
use crate::cli::render::duration;

/// The width of the names, and of a standing's column; all together 80 columns.
const NAMES: usize = 30;
const COLUMN: usize = 10;

/// Returns a line of titles and two lines for each limit, as far as a screen of that height has
/// room; none if no limit reserves.
pub(super) fn lines(model: &Model, height: u16, palette: &Palette) -> Vec<Line<'static>> {
    let sample = model.sample.as_ref();
    let Some(standing) = sample.and_then(|sample| sample.standing.as_ref()) else {
        return Vec::new();
    };
    let room = room::limits(height);
    if standing.limits.is_empty() || room == 0 {
        return Vec::new();
    }
    let mut lines = vec![titles(standing, palette)];
    for (limit, rates) in standing.limits.iter().take(room) {
        let name: String = limit.chars().take(NAMES - "refused/s".len() - 2).collect();
        let passed = numbers(rates, |rate| rate.passed_packets_per_second);
        let refused = numbers(rates, |rate| rate.refused_packets_per_second);
        let pad = NAMES - name.chars().count();
        lines.push(Line::raw(format!("{name}{:>pad$}{passed}", "passed/s")));
        lines.push(Line::styled(
            format!("{:>NAMES$}{refused}", "refused/s"),
            palette.drops,
        ));
    }
    lines
}

fn titles(standing: &StandingRates, palette: &Palette) -> Line<'static> {
    let (said, style) = match &standing.shortage {
        Some(shortage) => {
            let lasted = duration(shortage.began_ago_ns);
            (format!("SHORTAGE for {lasted}"), palette.alarm)
        }
        None => ("no shortage".to_owned(), palette.aside),
    };
    let names = Standing::ALL.map(|standing| format!("{:>COLUMN$}", standing.name()));
    Line::from(vec![
        Span::styled(format!("{said:<NAMES$}"), style),
        Span::styled(names.concat(), palette.heading),
    ])
}

fn numbers(rates: &[StandingRate], number: impl Fn(&StandingRate) -> Option<f64>) -> String {
    let cell = |one: &StandingRate| format!("{:>COLUMN$}", rate(number(one)));
    rates.iter().map(cell).collect::<Vec<_>>().concat()
}
