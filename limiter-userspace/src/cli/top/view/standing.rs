//! The traffic of sources by standing at limits with a reserve, above the offenders.

use limiter_protocol::{counted_name, counted_standings};
use limiter_report::render::duration;
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

/// The width of the names, and of a standing's column; all together 80 columns.
const NAMES: usize = 26;
const COLUMN: usize = 9;

/// Returns a line of titles and two lines for each limit, as far as a screen of this height has room; none if
/// no limit has a reserve.
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
    let names = counted_standings().map(|standing| format!("{:>COLUMN$}", counted_name(standing)));
    Line::from(vec![
        Span::styled(format!("{said:<NAMES$}"), style),
        Span::styled(names.collect::<String>(), palette.heading),
    ])
}

fn numbers(rates: &[StandingRate], number: impl Fn(&StandingRate) -> Option<f64>) -> String {
    let cell = |one: &StandingRate| format!("{:>COLUMN$}", short_rate(number(one)));
    rates.iter().map(cell).collect::<Vec<_>>().concat()
}

/// Formats a rate that leaves a column's first character free.
fn short_rate(per_second: Option<f64>) -> String {
    match per_second {
        Some(millions) if millions >= 999_999.5 => format!("{:.1} M", millions / 1e6),
        _ => rate(per_second),
    }
}
