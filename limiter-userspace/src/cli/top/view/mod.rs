//! Draws the model.

mod automatic;
mod change;
mod connections;
mod explained;
mod limits;
mod offenders;
mod page;
mod palette;
mod room;
mod standing;
mod table;
mod totals;

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    text::Line,
    widgets::Paragraph,
};

use self::palette::Palette;
use super::{
    keys::{HELP, HINTS},
    model::{Model, Page},
    subject::Subject,
};

/// With fewer rows there is no room for the sparkline.
const ROOMY: u16 = 12;

/// Draws in colour or without.
#[derive(Debug)]
pub(super) struct View {
    palette: Palette,
}

impl View {
    /// In colour, unless NO_COLOR is set.
    pub(super) fn for_terminal() -> Self {
        Self {
            palette: Palette::for_terminal(),
        }
    }

    /// Fills the frame, and cuts the rest.
    pub(super) fn draw(&self, frame: &mut Frame, model: &Model) {
        let sparkline = if frame.area().height < ROOMY { 0 } else { 3 };
        let height = frame.area().height;
        let automatic = automatic::lines(model, height, &self.palette);
        let automatic_height = u16::try_from(automatic.len()).unwrap_or(u16::MAX);
        let left = height.saturating_sub(automatic_height);
        let standing = match model.subject {
            // The table has all of it.
            Subject::Standing => Vec::new(),
            _ => standing::lines(model, left, &self.palette),
        };
        let standing_height = u16::try_from(standing.len()).unwrap_or(u16::MAX);
        let [head, drops, rates, standings, body, choices, hints] = Layout::vertical([
            Constraint::Length(2),
            Constraint::Length(sparkline),
            Constraint::Length(automatic_height),
            Constraint::Length(standing_height),
            Constraint::Fill(1),
            Constraint::Length(1),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        totals::draw_head(frame, head, model, &self.palette);
        totals::draw_sparkline(frame, drops, model, &self.palette);
        frame.render_widget(Paragraph::new(automatic), rates);
        frame.render_widget(Paragraph::new(standing), standings);
        match &model.page {
            Page::Table | Page::Filter => self.draw_table(frame, body, model),
            Page::Confirmation(_) | Page::Changing(_) | Page::Outcome(_) => {
                let lines = change::lines(&model.page, body.width, &self.palette);
                let lines_height = u16::try_from(lines.len()).unwrap_or(u16::MAX);
                let [change, _, table] = Layout::vertical([
                    Constraint::Length(lines_height),
                    Constraint::Length(1),
                    Constraint::Fill(1),
                ])
                .areas(body);
                frame.render_widget(Paragraph::new(lines), change);
                self.draw_table(frame, table, model);
            }
            Page::Help => page::draw(frame, body, " help ", help()),
            Page::Explanation {
                address,
                explanation,
            } => {
                let title = format!(" {address} ");
                let lines = explained::lines(*address, explanation.as_deref(), &self.palette);
                page::draw(frame, body, &title, lines);
            }
        }
        frame.render_widget(offenders::choices(model, &self.palette), choices);
        frame.render_widget(Paragraph::new(HINTS).style(self.palette.aside), hints);
    }

    fn draw_table(&self, frame: &mut Frame, area: Rect, model: &Model) {
        let draw = match model.subject {
            Subject::Offenders => offenders::draw,
            Subject::Limits => limits::draw,
            Subject::Standing => limits::draw_standings,
            Subject::Connections => connections::draw,
        };
        draw(frame, area, model, &self.palette);
    }
}

fn help() -> Vec<Line<'static>> {
    HELP.iter()
        .map(|(keys, action)| Line::raw(format!("{keys:<12}{action}")))
        .collect()
}

#[cfg(test)]
mod tests;
