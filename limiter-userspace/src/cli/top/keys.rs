//! The keys and their actions.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::subject::Subject;

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
    /// Shows another table.
    Show(Subject),
    NextSubject,
    /// Asks whether to ban the selected row.
    Ban,
    /// Asks whether to lift the bans of the selected row.
    Unban,
    /// Adds a character to the text being typed.
    Type(char),
    /// Removes the last character.
    Erase,
    /// Moves to the next text field.
    NextField,
    /// Keeps the filter, or confirms a change.
    Accept,
    /// Closes the element in front of the table; without one, clears the filter.
    Back,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrontElement {
    Nothing,
    /// The line where the filter is typed.
    Filter,
    /// The help, an explanation, or the outcome of a change.
    Page,
    /// A change that waits for confirmation.
    Confirmation,
}

/// How many rows a page key moves.
const PAGE: isize = 10;

/// The help page, the most useful keys first.
pub(super) const HELP: [(&str, &str); 15] = [
    ("q, Ctrl-C", "quit"),
    ("?, h", "this help"),
    ("↑ ↓, k j", "select a row; PgUp and PgDn: move by ten"),
    ("Home, End", "the first row, the last row"),
    ("v, 1 to 4", "offenders, limits, standing, or connections"),
    ("e, Enter", "explain the address; open the range or limit"),
    ("b", "ban the row's address or range, once confirmed"),
    ("u", "lift the row's ban, once confirmed"),
    ("s", "sort by the next column"),
    ("r", "reverse the order"),
    ("/", "filter by prefix, or part of a name or address"),
    ("Esc", "back to the table; there: clear the filter"),
    ("g", "group: a row for each address, range or name"),
    ("p, Space", "pause or resume"),
    ("", "≥: at least this many; –: not known yet"),
];

/// The most important keys, on one line.
pub(super) const HINTS: &str =
    "q quit  ? help  v view  e explain  b ban  u unban  s sort  / filter  g group";

/// Returns the keys of an event. A terminal sends Alt with a key as Esc followed by the key, so a fast Esc and
/// key look like Alt. `top` does not use Alt, and takes both keys.
pub(super) fn apart(key: KeyEvent) -> impl Iterator<Item = KeyEvent> {
    let is_alt = key.modifiers.contains(KeyModifiers::ALT);
    let escape = is_alt.then_some(KeyEvent::from(KeyCode::Esc));
    let modifiers = key.modifiers - KeyModifiers::ALT;
    escape.into_iter().chain([KeyEvent { modifiers, ..key }])
}

/// Returns the action of a key, if it has one.
pub(super) fn action(key: KeyEvent, front: FrontElement) -> Option<Action> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return (key.code == KeyCode::Char('c')).then_some(Action::Quit);
    }
    match (front, key.code) {
        (_, KeyCode::Esc) => Some(Action::Back),
        (FrontElement::Nothing, code) => on_the_table(code),
        (FrontElement::Page, code) => on_a_page(code),
        (FrontElement::Confirmation, KeyCode::Tab | KeyCode::Up | KeyCode::Down) => {
            Some(Action::NextField)
        }
        (FrontElement::Filter | FrontElement::Confirmation, code) => typing(code),
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

fn on_the_table(code: KeyCode) -> Option<Action> {
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
        KeyCode::Char('v') => Action::NextSubject,
        KeyCode::Char('b') => Action::Ban,
        KeyCode::Char('u') => Action::Unban,
        KeyCode::Char(character) => return Subject::of_digit(character).map(Action::Show),
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
        let check = |code: KeyCode, expected: [Option<Action>; 4]| {
            let fronts = [
                FrontElement::Nothing,
                FrontElement::Filter,
                FrontElement::Page,
                FrontElement::Confirmation,
            ];
            let found = fronts.map(|front| action(code.into(), front));
            assert_eq!(found, expected, "{code:?}");
        };
        let typed = |character| Some(Action::Type(character));
        let (quit, back) = (Some(Action::Quit), Some(Action::Back));
        let all = |table, character| [table, typed(character), None, typed(character)];
        check(KeyCode::Char('q'), [quit, typed('q'), quit, typed('q')]);
        check(KeyCode::Char('j'), all(Some(Action::Move(1)), 'j'));
        check(
            KeyCode::Char('e'),
            [Some(Action::Explain), typed('e'), back, typed('e')],
        );
        check(KeyCode::Char('p'), all(Some(Action::Pause), 'p'));
        check(KeyCode::Char('b'), all(Some(Action::Ban), 'b'));
        check(KeyCode::Char('u'), all(Some(Action::Unban), 'u'));
        check(KeyCode::Char('v'), all(Some(Action::NextSubject), 'v'));
        let limits = Some(Action::Show(Subject::Limits));
        check(KeyCode::Char('2'), all(limits, '2'));
        let accept = Some(Action::Accept);
        check(
            KeyCode::Enter,
            [Some(Action::Explain), accept, back, accept],
        );
        let erase = Some(Action::Erase);
        check(KeyCode::Backspace, [None, erase, None, erase]);
        check(KeyCode::Tab, [None, None, None, Some(Action::NextField)]);
        check(KeyCode::Esc, [back; 4]);
        check(KeyCode::Char('x'), all(None, 'x'));
        check(KeyCode::F(1), [None; 4]);
    }

    #[test]
    fn help_fits_60_columns() {
        for (_, action) in HELP {
            assert!(12 + action.chars().count() <= 58, "{action}");
        }
    }

    #[test]
    fn escape_and_the_key_after_it_are_two_keys() {
        let keys = |code, modifiers| -> Vec<_> { apart(KeyEvent::new(code, modifiers)).collect() };
        let [escape, ban] = [KeyCode::Esc, KeyCode::Char('b')].map(KeyEvent::from);
        assert_eq!(keys(ban.code, KeyModifiers::NONE), [ban]);
        assert_eq!(keys(ban.code, KeyModifiers::ALT), [escape, ban]);
        let quit = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        let both = KeyModifiers::ALT | KeyModifiers::CONTROL;
        assert_eq!(keys(quit.code, both), [escape, quit]);
    }

    #[test]
    fn control_c_always_quits() {
        for front in [
            FrontElement::Nothing,
            FrontElement::Filter,
            FrontElement::Page,
            FrontElement::Confirmation,
        ] {
            let key = |code| KeyEvent::new(KeyCode::Char(code), KeyModifiers::CONTROL);
            assert_eq!(action(key('c'), front), Some(Action::Quit));
            assert_eq!(action(key('q'), front), None);
        }
    }
}
