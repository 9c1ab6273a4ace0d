//! The terminal's alternate screen.

use std::io;

use crossterm::terminal::is_raw_mode_enabled;
use ratatui::DefaultTerminal;

use super::{model::Model, view::View};

/// The terminal's alternate screen, in raw mode. Dropping it restores the terminal; a panic restores it before
/// the message.
pub(super) struct Screen {
    terminal: DefaultTerminal,
    view: View,
}

impl Screen {
    pub(super) fn enter() -> io::Result<Self> {
        Ok(Self {
            // Undo a failed attempt, which may have got halfway.
            terminal: ratatui::try_init().inspect_err(|_| leave())?,
            view: View::for_terminal(),
        })
    }

    pub(super) fn show(&mut self, model: &Model) -> io::Result<()> {
        self.terminal.draw(|frame| self.view.draw(frame, model))?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Restores the terminal once: a second time, after a panic, would overwrite the message.
fn leave() {
    if is_raw_mode_enabled().unwrap_or(true) {
        // Ignore errors: the terminal is gone.
        let _ = ratatui::try_restore();
    }
}
