//! The head of the screen: the interfaces, and the rates of packets.

use limiter_protocol::InterfaceStatus;
use limiter_report::render::{count, duration, nanoseconds};
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    text::{Line, Span},
    widgets::{Paragraph, RenderDirection, Sparkline},
};

use super::{super::model::Model, offenders::rate, palette::Palette};

pub(super) fn draw_head(frame: &mut Frame, area: Rect, model: &Model, palette: &Palette) {
    let pace = if model.paused {
        Span::styled("PAUSED", palette.alarm)
    } else {
        let interval = duration(nanoseconds(model.interval));
        Span::styled(format!("every {interval}"), palette.aside)
    };
    let [first, second] = Layout::vertical([Constraint::Length(1); 2]).areas(area);
    let pace_width = u16::try_from(pace.width() + 1).unwrap_or(u16::MAX);
    let [left, right] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Length(pace_width)]).areas(first);
    frame.render_widget(Paragraph::new(interfaces(model, palette)), left);
    frame.render_widget(Paragraph::new(pace).right_aligned(), right);
    frame.render_widget(Paragraph::new(traffic(model, area.width, palette)), second);
}

/// Draws the rates of drops, the newest on the right.
pub(super) fn draw_sparkline(frame: &mut Frame, area: Rect, model: &Model, palette: &Palette) {
    let sparkline = Sparkline::default()
        .data(model.history.newest(area.width))
        .direction(RenderDirection::RightToLeft)
        .style(palette.drops);
    frame.render_widget(sparkline, area);
}

fn interfaces<'m>(model: &'m Model, palette: &Palette) -> Line<'m> {
    let mut line = Line::from(Span::styled("limiter top", palette.heading));
    for interface in model
        .sample
        .iter()
        .flat_map(|sample| &sample.status.interfaces)
    {
        line.push_span("  ");
        line.push_span(interface_state(interface, palette));
    }
    line
}

fn interface_state<'m>(interface: &'m InterfaceStatus, palette: &Palette) -> Span<'m> {
    let name = &interface.name;
    match &interface.mode {
        Some(mode) if interface.attached => Span::raw(format!("{name} {mode}")),
        _ => Span::styled(format!("{name} NOT attached"), palette.alarm),
    }
}

/// Returns the rates of all packets, and of answers if a limit sends some. `most`: the value of the sparkline's
/// highest column.
fn traffic<'m>(model: &Model, width: u16, palette: &Palette) -> Line<'m> {
    let (passed, dropped) = model.sample.as_ref().map_or((None, None), |sample| {
        (
            sample.passed_packets_per_second,
            sample.dropped_packets_per_second,
        )
    });
    let most = model.history.newest(width).into_iter().max().unwrap_or(0);
    let mut line = Line::from(vec![
        Span::raw(format!("passed {}/s  ", rate(passed))),
        Span::styled(format!("dropped {}/s", rate(dropped)), palette.drops),
    ]);
    if let Some(sample) = &model.sample
        && !sample.answers_per_second.is_empty()
    {
        let answered = rate(sample.all_answers_per_second());
        line.push_span(format!("  answered {answered}/s"));
    }
    let most = format!("  most {}/s", count(most));
    line.push_span(Span::styled(most, palette.aside));
    line
}
