//! Styles, in colour and without.

use crossterm::style::Colored;
use ratatui::style::{Color, Modifier, Style};

#[derive(Debug)]
pub(in super::super) struct Palette {
    /// A title or label.
    pub(super) heading: Style,
    /// Dropped packets.
    pub(super) drops: Style,
    /// Text that needs attention.
    pub(super) alarm: Style,
    /// The selected row.
    pub(super) selected: Style,
    /// Secondary text.
    pub(super) aside: Style,
}

impl Palette {
    /// In colour, unless NO_COLOR is set.
    pub(super) fn for_terminal() -> Self {
        if Colored::ansi_color_disabled() {
            Self::plain()
        } else {
            Self::coloured()
        }
    }

    /// Without any colour.
    pub(super) const fn plain() -> Self {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        Self {
            heading: bold,
            drops: Style::new(),
            alarm: bold,
            selected: Style::new().add_modifier(Modifier::REVERSED),
            aside: Style::new().add_modifier(Modifier::DIM),
        }
    }

    /// With the basic colours that every terminal has.
    pub(super) const fn coloured() -> Self {
        let plain = Self::plain();
        Self {
            heading: plain.heading.fg(Color::Cyan),
            drops: Style::new().fg(Color::Red),
            alarm: plain.alarm.fg(Color::Red),
            ..plain
        }
    }
}
