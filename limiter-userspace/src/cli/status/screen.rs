//! The terminal as one page that is redrawn in place.

use std::io::{self, Stdout, Write as _};

use crossterm::{
    cursor::{Hide, MoveTo, Show},
    execute, queue,
    style::Print,
    terminal::{
        Clear, ClearType, DisableLineWrap, EnableLineWrap, EnterAlternateScreen,
        LeaveAlternateScreen, size,
    },
};
use limiter_policy::text::one_line;

/// The terminal's alternate screen; dropping it restores the earlier content.
pub(super) struct Screen(Stdout);

impl Screen {
    pub(super) fn enter() -> io::Result<Self> {
        // First, so that a later failure undoes the changes.
        let mut screen = Self(io::stdout());
        execute!(screen.0, EnterAlternateScreen, Hide, DisableLineWrap)?;
        Ok(screen)
    }

    /// Redraws without flicker. Long lines are cut; lines beyond the height are counted.
    pub(super) fn show(&mut self, text: &str) -> io::Result<()> {
        let (_, height) = size()?;
        let mut out = self.0.lock();
        for (row, line) in (0..).zip(page(text, height.into())) {
            queue!(
                out,
                MoveTo(0, row),
                Print(line),
                Clear(ClearType::UntilNewLine)
            )?;
        }
        queue!(out, Clear(ClearType::FromCursorDown))?;
        out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Ignore errors: the terminal is gone.
        let _ = execute!(self.0, EnableLineWrap, Show, LeaveAlternateScreen);
    }
}

/// Returns the lines to show in `height` rows.
fn page(text: &str, height: usize) -> Vec<String> {
    let mut lines: Vec<_> = text.lines().map(one_line).collect();
    if lines.len() > height {
        let hidden = lines.len() - height.saturating_sub(1);
        lines.truncate(height.saturating_sub(1));
        lines.push(format!("… {hidden} more lines: make the window taller"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted() {
        assert_eq!(page("a\nb\u{1b}[2J\n", 2), ["a", "b\\u{1b}[2J"]);
        assert_eq!(
            page("a\nb\nc\n", 2),
            ["a", "… 2 more lines: make the window taller"]
        );
    }
}
