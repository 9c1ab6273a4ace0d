//! The terminal's other page.

use std::io;

use crossterm::terminal::is_raw_mode_enabled;
use ratatui::DefaultTerminal;

use super::{model::Model, view::View};

/// The terminal's other page, where keys are read one by one; dropping it makes the terminal what
/// it was before. So does a panic, before its message is written.
pub(super) struct Screen {
    terminal: DefaultTerminal,
    view: View,
}

impl Screen {
    pub(super) fn enter() -> io::Result<Self> {
        Ok(Self {
            // What it has done halfway, too, has to be undone.
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

/// Once: to leave again what a panic has left would draw over its message.
fn leave() {
    if is_raw_mode_enabled().unwrap_or(true) {
        // A terminal that is gone shows nothing anyway.
        let _ = ratatui::try_restore();
    }
}
