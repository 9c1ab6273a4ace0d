//! A page in place of the table.

use ratatui::{
    Frame,
    layout::Rect,
    text::Line,
    widgets::{Block, Clear, Paragraph},
};

/// Draws lines in a box, and counts the lines that do not fit.
pub(super) fn draw(frame: &mut Frame, area: Rect, title: &str, mut lines: Vec<Line>) {
    let block = Block::bordered().title(title).title_bottom(" Esc: back ");
    let height = block.inner(area).height.into();
    if lines.len() > height {
        let shown = usize::saturating_sub(height, 1);
        let hidden = lines.len() - shown;
        lines.truncate(shown);
        lines.push(Line::raw(format!(
            "… {hidden} more lines: make the window taller"
        )));
    }
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(block), area);
}
