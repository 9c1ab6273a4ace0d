//! Draws the limits of an address.

use std::net::IpAddr;

use limiter_protocol::{Explanation, LimitExplanation};
use limiter_report::{
    explanation::{answers, last_drop_lines, summary},
    render::{count, duration},
    standing,
};
use ratatui::text::{Line, Span};

use super::palette::Palette;

/// The output of `limiter explain`, for a narrow page: two lines per limit.
pub(super) fn lines<'e>(
    address: IpAddr,
    explanation: Option<&'e Explanation>,
    palette: &Palette,
) -> Vec<Line<'e>> {
    let Some(explanation) = explanation else {
        return vec![Line::raw("asking the daemon …")];
    };
    let mut lines = Vec::new();
    // First, so that a small page shows it.
    if let Some(last) = &explanation.last_drop {
        lines.extend(last_drop_lines(last).map(Line::raw));
        lines.push(Line::default());
    }
    for said in summary(explanation) {
        lines.push(Line::raw(format!("{address}: {said}")));
    }
    lines.extend(
        standing::explanation_lines(explanation)
            .into_iter()
            .map(Line::raw),
    );
    lines.extend(answers(explanation).into_iter().map(Line::raw));
    for limit in &explanation.limits {
        lines.extend(limit_lines(limit, palette));
    }
    lines
}

fn limit_lines<'e>(limit: &'e LimitExplanation, palette: &Palette) -> [Line<'e>; 2] {
    let mut first = Line::from(vec![
        Span::styled(&limit.limit, palette.heading),
        Span::raw(format!(
            " of {} ({}, {})",
            limit.id,
            limit.mode.name(),
            limit.source
        )),
    ]);
    if let Some(matching) = &limit.matching {
        first.push_span(format!(", {matching}"));
    }
    let left = Span::raw(format!("  {} left", count(limit.remaining)));
    let left = if limit.remaining == 0 {
        left.style(palette.alarm)
    } else {
        left
    };
    let rate = format!("{} per {}", count(limit.count), duration(limit.period_ns));
    let of = match limit.burst {
        Some(burst) => format!("{}, {rate}", count(burst)),
        None => format!("{rate}, by {}", limit.strategy),
    };
    let second = Line::from(vec![
        left,
        Span::raw(format!(
            " of {of}; retry in {}, reset in {}",
            duration(limit.retry_in_ns),
            duration(limit.reset_in_ns),
        )),
    ]);
    [first, second]
}
