//! The keys and their actions.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// An action that the user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Quit,
    /// Moves down by this many rows, or up if negative.
    Move(isize),
    First,
    Last,
    NextColumn,
    Reverse,
    Group,
    Pause,
    /// Explains the selected row.
    Explain,
    Help,
    EditFilter,
    /// Adds a character to the filter.
    Type(char),
    /// Removes the filter's last character.
    Erase,
    /// Closes what is in front of the table and keeps its effect.
    Accept,
    /// Closes what is in front of the table; if nothing is, clears the filter.
    Back,
}

/// The element in front of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Front {
    Nothing,
    /// The line where the filter is typed.
    Filter,
    /// The help or an explanation.
    Page,
}

/// How many rows a page key moves.
const PAGE: isize = 10;

/// The help page, the most useful keys first.
pub(super) const HELP: [(&str, &str); 12] = [
    ("q, Ctrl-C", "quit"),
    ("?, h", "this help"),
    ("↑ ↓, k j", "select a row; PgUp and PgDn: move by ten"),
    ("Home, End", "the first row, the last row"),
    (
        "e, Enter",
        "explain the address of the selected row; open a range",
    ),
    ("s", "sort by the next column"),
    ("r", "reverse the order"),
    (
        "/",
        "filter by prefix, or by part of a limit's name or address",
    ),
    ("Esc", "back to the table; on the table: clear the filter"),
    ("g", "group: a row for each address, or for each range"),
    ("p, Space", "pause or resume"),
    ("", "≥: at least this many; –: not known yet"),
];

/// The most important keys, on one line.
pub(super) const HINTS: &str =
    "q quit  ? help  e explain  s sort  r reverse  / filter  g group  p pause";

/// Returns the action of a key, if it has one.
pub(super) fn action(key: KeyEvent, front: Front) -> Option<Action> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return (key.code == KeyCode::Char('c')).then_some(Action::Quit);
    }
    match (front, key.code) {
        (_, KeyCode::Esc) => Some(Action::Back),
        (Front::Nothing, code) => on_the_table(code),
        (Front::Filter, code) => typing(code),
        (Front::Page, code) => on_a_page(code),
    }
}

const fn typing(code: KeyCode) -> Option<Action> {
    Some(match code {
        KeyCode::Enter => Action::Accept,
        KeyCode::Backspace => Action::Erase,
        KeyCode::Char(character) => Action::Type(character),
        _ => return None,
    })
}

const fn on_the_table(code: KeyCode) -> Option<Action> {
    Some(match code {
        KeyCode::Char('q') => Action::Quit,
        KeyCode::Down | KeyCode::Char('j') => Action::Move(1),
        KeyCode::Up | KeyCode::Char('k') => Action::Move(-1),
        KeyCode::PageDown => Action::Move(PAGE),
        KeyCode::PageUp => Action::Move(-PAGE),
        KeyCode::Home => Action::First,
        KeyCode::End => Action::Last,
        KeyCode::Char('s') => Action::NextColumn,
        KeyCode::Char('r') => Action::Reverse,
        KeyCode::Char('g') => Action::Group,
        KeyCode::Char('p' | ' ') => Action::Pause,
        KeyCode::Enter | KeyCode::Char('e') => Action::Explain,
        KeyCode::Char('?' | 'h') => Action::Help,
        KeyCode::Char('/') => Action::EditFilter,
        _ => return None,
    })
}

const fn on_a_page(code: KeyCode) -> Option<Action> {
    Some(match code {
        KeyCode::Char('q') => Action::Quit,
        KeyCode::Enter | KeyCode::Char('e' | '?' | 'h') => Action::Back,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_key_does_depends_on_what_is_in_front() {
        let check = |code: KeyCode, expected: [Option<Action>; 3]| {
            let fronts = [Front::Nothing, Front::Filter, Front::Page];
            let found = fronts.map(|front| action(code.into(), front));
            assert_eq!(found, expected, "{code:?}");
        };
        let typed = |character| Some(Action::Type(character));
        let (quit, back) = (Some(Action::Quit), Some(Action::Back));
        check(KeyCode::Char('q'), [quit, typed('q'), quit]);
        check(
            KeyCode::Char('j'),
            [Some(Action::Move(1)), typed('j'), None],
        );
        check(
            KeyCode::Char('e'),
            [Some(Action::Explain), typed('e'), back],
        );
        check(KeyCode::Char('p'), [Some(Action::Pause), typed('p'), None]);
        check(
            KeyCode::Enter,
            [Some(Action::Explain), Some(Action::Accept), back],
        );
        check(KeyCode::Backspace, [None, Some(Action::Erase), None]);
        check(KeyCode::Esc, [back, back, back]);
        check(KeyCode::Char('x'), [None, typed('x'), None]);
        check(KeyCode::F(1), [None, None, None]);
    }

    #[test]
    fn control_c_always_quits() {
        for front in [Front::Nothing, Front::Filter, Front::Page] {
            let key = |code| KeyEvent::new(KeyCode::Char(code), KeyModifiers::CONTROL);
            assert_eq!(action(key('c'), front), Some(Action::Quit));
            assert_eq!(action(key('q'), front), None);
        }
    }
}
