//! Reading a tree of nodes without stopping at the first error.

use std::ops::RangeInclusive;

use super::{
    diagnostics::{FileNumber, Place, Position, Problems},
    nearest,
    node::{Node, Value},
    rate::text,
    seen::Seen,
    traffic_server,
};

/// Reads the nodes of one file and notes what is wrong with them.
///
/// Its methods return `None` when what they look for is not there in a form that can be used;
/// they have then noted why.
pub(super) struct Reader<'n, 'p> {
    source: &'n str,
    file: FileNumber,
    problems: &'p mut Problems,
}

/// A name in a mapping.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name<'n> {
    /// The name.
    pub(super) text: &'n str,
    /// Where it stands.
    pub(super) at: Position,
}

/// The fields of a mapping whose names are all known, each there at most once.
pub(super) struct Fields<'n> {
    present: Vec<(Name<'n>, &'n Node<'n>)>,
    /// The known names that unknown ones were taken for.
    misspelt: Vec<&'static str>,
}

impl<'n> Fields<'n> {
    /// A field's value; `None`: the field is absent.
    pub(super) fn get(&self, name: &str) -> Option<&'n Node<'n>> {
        self.named(name).map(|(_, value)| value)
    }

    /// A field with its name; `None`: the field is absent.
    pub(super) fn named(&self, name: &str) -> Option<(Name<'n>, &'n Node<'n>)> {
        let mut present = self.present.iter();
        present.find(|(field, _)| field.text == name).copied()
    }

    /// Whether a field is absent and not merely misspelt, which was noted already.
    pub(super) fn is_missing(&self, name: &str) -> bool {
        self.get(name).is_none() && !self.misspelt.contains(&name)
    }
}

impl<'n, 'p> Reader<'n, 'p> {
    /// A reader of the nodes that were parsed from `source`, the text of `file`.
    pub(super) fn new(source: &'n str, file: FileNumber, problems: &'p mut Problems) -> Self {
        Self {
            source,
            file,
            problems,
        }
    }

    /// Where the errors of all files are noted.
    pub(super) fn problems(&mut self) -> &mut Problems {
        self.problems
    }

    /// A place in this file.
    pub(super) const fn place(&self, at: Position) -> Place {
        Place {
            file: self.file,
            at,
        }
    }

    /// Notes an error.
    pub(super) fn error(&mut self, at: Position, message: impl Into<String>) {
        self.problems.note(self.file, Some(at), message.into());
    }

    /// Notes that a value is not of the kind that belongs there.
    pub(super) fn unexpected(&mut self, node: &'n Node<'n>, expected: &str) {
        let found = self.describe(node);
        self.error(node.at, format!("expected {expected}, found {found}"));
    }

    /// A scalar as it is written, text without its quotes; `None` for lists and mappings.
    pub(super) fn scalar(&self, node: &'n Node<'n>) -> Option<&'n str> {
        node.scalar(self.source)
    }

    /// Where a byte of a scalar stands; where it begins, if that cannot be told.
    pub(super) fn within(&self, node: &'n Node<'n>, offset: usize) -> Position {
        node.within(self.source, offset)
    }

    /// The text of a field: any scalar, as it is written, but for an absent one.
    pub(super) fn text(&mut self, node: &'n Node<'n>, expected: &str) -> Option<&'n str> {
        let text = match node.value {
            Value::Null => None,
            _ => self.scalar(node),
        };
        if text.is_none() {
            self.unexpected(node, expected);
        }
        text
    }

    /// A whole number above 0, at most `i64::MAX` as in Boulder.
    pub(super) fn positive(&mut self, node: &'n Node<'n>, name: &str) -> Option<u64> {
        self.whole(node, name, POSITIVE)
    }

    /// A whole number in a range.
    pub(super) fn whole(
        &mut self,
        node: &'n Node<'n>,
        name: &str,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        let written = self.scalar(node).unwrap_or_default();
        let must = match &node.value {
            Value::Unsigned(value) if range.contains(value) => return Some(*value),
            Value::Unsigned(value) => outside(&range, value < range.start()),
            Value::OtherNumber => wrong_number(written, &range),
            Value::Text(text) if text.parse::<u64>().is_ok() => {
                "must be a number without quotes".to_owned()
            }
            _ => {
                self.unexpected(node, "a whole number");
                return None;
            }
        };
        self.error(node.at, format!("invalid {name} '{written}', {must}"));
        None
    }

    /// One of the `known` names: what it stands for.
    pub(super) fn choice<T: Copy, const N: usize>(
        &mut self,
        node: &'n Node<'n>,
        what: &str,
        known: [(&str, T); N],
    ) -> Option<T> {
        let names = known.map(|(name, _)| name);
        let text = self.text(node, &nearest::alternatives(&names))?;
        let found = known.iter().find(|(name, _)| *name == text);
        if found.is_none() {
            self.error(node.at, nearest::unknown(what, text, &names));
        }
        found.map(|(_, value)| *value)
    }

    /// The items of a list.
    pub(super) fn items(&mut self, node: &'n Node<'n>, expected: &str) -> Option<&'n [Node<'n>]> {
        if let Value::Sequence(items) = &node.value {
            Some(items)
        } else {
            self.unexpected(node, expected);
            None
        }
    }

    /// The items of a list that is not empty; a value that stands alone is one.
    pub(super) fn one_or_more(&mut self, node: &'n Node<'n>, what: &str) -> &'n [Node<'n>] {
        match &node.value {
            Value::Sequence(items) => {
                if items.is_empty() {
                    self.error(node.at, format!("no {what}: name at least one"));
                }
                items
            }
            _ => std::slice::from_ref(node),
        }
    }

    /// The entries of a mapping whose names are the operator's; those that cannot be used (a
    /// second one of a name, a name that is no text) are noted and left out.
    pub(super) fn entries(
        &mut self,
        node: &'n Node<'n>,
        expected: &str,
    ) -> Option<Vec<(Name<'n>, &'n Node<'n>)>> {
        let Value::Mapping(entries) = &node.value else {
            self.unexpected(node, expected);
            return None;
        };
        let mut seen = Seen::default();
        let mut usable = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let Some(text) = self.text(key, "a name") else {
                continue;
            };
            if seen.is_first(self, text, key.at, || format!("'{text}'")) {
                usable.push((Name { text, at: key.at }, value));
            }
        }
        Some(usable)
    }

    /// The entries of a mapping whose names must be among `known`.
    pub(super) fn fields(
        &mut self,
        node: &'n Node<'n>,
        expected: &str,
        known: &[&'static str],
    ) -> Option<Fields<'n>> {
        self.fields_and(node, expected, known, &[])
    }

    /// Like `fields`; the names in `refused` come through too, but are not suggested. A name may
    /// have underscores for its hyphens.
    pub(super) fn fields_and(
        &mut self,
        node: &'n Node<'n>,
        expected: &str,
        known: &[&'static str],
        refused: &[&'static str],
    ) -> Option<Fields<'n>> {
        let mut present = Vec::new();
        let mut misspelt = Vec::new();
        let mut seen = Seen::default();
        for (name, value) in self.entries(node, expected)? {
            let mut names = known.iter().chain(refused);
            if let Some(text) = names.find(|known| is_spelled(known, name.text)) {
                if seen.is_first(self, text, name.at, || format!("'{text}'")) {
                    present.push((Name { text, ..name }, value));
                }
            } else if let Some(message) = traffic_server::without_meaning(name.text) {
                self.error(name.at, message);
            } else if known.contains(&text::RATE) && text::is_valid(name.text) {
                let message = format!(
                    "'{}' stands behind a ',' that ends the field before it: put all of '{}' in \
                     quotes",
                    name.text,
                    text::RATE
                );
                self.error(name.at, message);
            } else {
                self.error(name.at, nearest::unknown("field", name.text, known));
                misspelt.extend(nearest::nearest(name.text, known));
            }
        }
        Some(Fields { present, misspelt })
    }

    fn describe(&self, node: &'n Node<'n>) -> String {
        let written = self.scalar(node).unwrap_or_default();
        match &node.value {
            Value::Null => "nothing".to_owned(),
            Value::Boolean => format!("the boolean '{written}'"),
            Value::Unsigned(_) | Value::OtherNumber => format!("the number '{written}'"),
            Value::Text(text) => format!("the text '{text}'"),
            Value::Sequence(_) => "a list".to_owned(),
            Value::Mapping(entries) if entries.is_empty() => "an empty mapping".to_owned(),
            Value::Mapping(_) => "a mapping".to_owned(),
        }
    }
}

/// Whether a text is a name, perhaps with underscores for its hyphens, as Traffic Server has them.
fn is_spelled(name: &str, text: &str) -> bool {
    name == text || (text.contains('_') && name == text.replace('_', "-"))
}

/// Boulder's numbers are signed 64-bit ones.
const POSITIVE: RangeInclusive<u64> = 1..=i64::MAX.unsigned_abs();

/// What a number that is no whole number of 64 bits must be instead.
fn wrong_number(written: &str, range: &RangeInclusive<u64>) -> String {
    let digits = written.bytes().all(|byte| byte.is_ascii_digit());
    if written.starts_with('-') {
        outside(range, true)
    } else if digits && written.starts_with('0') {
        // YAML 1.1 reads them as octal, YAML 1.2 as decimal.
        "must be written without leading zeros".to_owned()
    } else if digits {
        outside(range, false)
    } else {
        "must be a whole number, in digits".to_owned()
    }
}

/// What a number below or above the range must be instead.
fn outside(range: &RangeInclusive<u64>, below: bool) -> String {
    let (least, most) = (range.start(), range.end());
    if *range != POSITIVE {
        format!("must be from {least} to {most}")
    } else if below {
        "must be > 0".to_owned()
    } else {
        format!("must be at most {most}")
    }
}
