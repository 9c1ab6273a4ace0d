//! What each key does.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What the user wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Quit,
    /// Rows further down, or up where negative.
    Move(isize),
    First,
    Last,
    NextColumn,
    Reverse,
    Group,
    Pause,
    /// Of the selected row.
    Explain,
    Help,
    EditFilter,
    /// Adds it to the filter.
    Type(char),
    /// Takes the filter's last character away.
    Erase,
    /// Ends what is in front of the table and keeps it.
    Accept,
    /// Ends what is in front of the table; in front of nothing, ends the filter.
    Back,
}

/// What is in front of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Front {
    Nothing,
    /// The line in which the filter is typed.
    Filter,
    /// A page: help, or an explanation.
    Page,
}

/// How many rows a page key moves.
const PAGE: isize = 10;

/// The keys for people, in the order in which they are useful.
pub(super) const HELP: [(&str, &str); 12] = [
    ("q, Ctrl-C", "quit"),
    ("?, h", "this help"),
    ("↑ ↓, k j", "select a row; PgUp and PgDn: ten further"),
    ("Home, End", "the first row, the last row"),
    (
        "e, Enter",
        "explain the address of the selected row; open a range",
    ),
    ("s", "sort by the next column"),
    ("r", "reverse the order"),
    ("/", "filter by a prefix, or a part of limit or address"),
    ("Esc", "back to the table; there: end the filter"),
    ("g", "group: a row for each address, or for each range"),
    ("p, Space", "pause, and go on"),
    ("", "≥: at least so many; –: not known yet"),
];

/// The same in one line.
pub(super) const HINTS: &str =
    "q quit  ? help  e explain  s sort  r reverse  / filter  g group  p pause";

/// What a key is for; `None`: nothing.
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
