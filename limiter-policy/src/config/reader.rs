//! Reads a tree of nodes without stopping at the first error.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::Hash,
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use jiff::Timestamp;

use super::{
    diagnostics::{FileNumber, FilePosition, Position, Problems},
    foreign,
    joined::{Lines, Texts},
    nearest,
    node::{Node, Value},
    numbers::{self, POSITIVE, outside, wrong_number},
    rate::text,
};
use crate::lists::Feeds;

/// Reads the nodes of a text, possibly joined from several files, and reports their errors.
///
/// Methods return `None` for an unusable value, after they reported the error. Once the report of errors is
/// full, they return `None` for every node, so that reading ends early.
pub(super) struct Reader<'n, 'p> {
    source: &'n str,
    lines: Lines<'n>,
    surroundings: &'p Surroundings<'p>,
    problems: &'p mut Problems,
}

/// The context of a configuration's text: its file, and access to the files that it names.
pub(super) struct Surroundings<'s> {
    pub(super) file: FileNumber,
    /// The directory of named files; `None`: the text may not name files.
    pub(super) directory: Option<&'s Path>,
    /// The previous contents of feed files.
    pub(super) feeds: &'s Feeds,
    /// The time, to find stale feed files. Unused without a directory.
    pub(super) now: Timestamp,
}

/// A name in a mapping, with its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name<'n> {
    pub(super) text: &'n str,
    pub(super) at: Position,
}

/// The fields of a mapping with known names, each at most once.
pub(super) struct Fields<'n> {
    present: Vec<(Name<'n>, &'n Node<'n>)>,
    /// The known names that misspelt names resemble.
    misspelt: Vec<&'static str>,
}

impl<'n> Fields<'n> {
    /// Returns a field's value; `None`: the field is absent.
    pub(super) fn get(&self, name: &str) -> Option<&'n Node<'n>> {
        self.find(name).map(|(_, value)| value)
    }

    /// Returns a field with its name; `None`: the field is absent.
    pub(super) fn find(&self, name: &str) -> Option<(Name<'n>, &'n Node<'n>)> {
        let mut present = self.present.iter();
        present.find(|(field, _)| field.text == name).copied()
    }

    /// Returns whether a field is absent, rather than misspelt, which was already reported.
    pub(super) fn is_missing(&self, name: &str) -> bool {
        self.get(name).is_none() && !self.misspelt.contains(&name)
    }

    /// Returns whether a field's value is unknown, because its name is misspelt.
    pub(super) fn is_misspelt(&self, name: &str) -> bool {
        self.get(name).is_none() && self.misspelt.contains(&name)
    }
}

impl<'n, 'p> Reader<'n, 'p> {
    /// Returns a reader of the nodes parsed from the texts of several files.
    pub(super) fn new(
        texts: &'n Texts,
        surroundings: &'p Surroundings<'p>,
        problems: &'p mut Problems,
    ) -> Self {
        Self {
            source: texts.text(),
            lines: texts.lines(),
            surroundings,
            problems,
        }
    }

    /// Returns a reader of the nodes parsed from `source`, the text of a file that this reader's text names.
    pub(super) fn of_named_file<'s, 'q>(
        &'q mut self,
        source: &'s str,
        file: FileNumber,
    ) -> Reader<'s, 'q> {
        Reader {
            source,
            lines: Lines::Of(file),
            surroundings: self.surroundings,
            problems: self.problems,
        }
    }

    pub(super) const fn surroundings(&self) -> &'p Surroundings<'p> {
        self.surroundings
    }

    /// Returns the path of a file named at a position; `None`: an error was reported, as the text may not name
    /// files.
    pub(super) fn named_path(&mut self, at: Position, name: &str) -> Option<PathBuf> {
        let file = self.position(at).file;
        let why = match self.surroundings.directory {
            None => "only a configuration file can name other files",
            Some(_) if self.problems.is_pushed(file) => "a file that is pushed cannot name others",
            Some(directory) => return Some(directory.join(name)),
        };
        self.error(at, format!("cannot read the file '{name}': {why}"));
        None
    }

    pub(super) fn problems(&mut self) -> &mut Problems {
        self.problems
    }

    pub(super) fn position(&self, at: Position) -> FilePosition {
        self.lines.position(at)
    }

    /// Formats an earlier position, for an error at the position `at`.
    fn format_position(&self, before: Position, at: Position) -> String {
        let reads = self.position(at).file;
        self.problems
            .format_position(self.position(before), Some(reads))
    }

    pub(super) fn error(&mut self, at: Position, message: impl Into<String>) {
        let position = self.position(at);
        self.problems.report_at(position, message.into());
    }

    /// Reports that a value is of the wrong kind.
    pub(super) fn unexpected(&mut self, node: &'n Node<'n>, expected: &str) {
        let found = self.describe(node);
        self.error(node.at, format!("expected {expected}, found {found}"));
    }

    /// Returns a scalar as it is written, a string without its quotes; `None` for lists and
    /// mappings.
    pub(super) fn scalar(&self, node: &'n Node<'n>) -> Option<&'n str> {
        node.scalar(self.source)
    }

    /// Returns the position of a byte of a scalar, or of the scalar's start if that is unknown.
    pub(super) fn within(&self, node: &'n Node<'n>, offset: usize) -> Position {
        node.within(self.source, offset)
    }

    /// Reads any scalar but null as text, as it is written.
    pub(super) fn text(&mut self, node: &'n Node<'n>, expected: &str) -> Option<&'n str> {
        if self.problems.are_too_many() {
            return None;
        }
        let written = self.scalar(node);
        match (&node.value, written) {
            (Value::Null, Some(word)) if word.eq_ignore_ascii_case("null") => {
                let message = format!(
                    "expected {expected}, found '{word}', by which YAML means nothing: put it in \
                     quotes"
                );
                self.error(node.at, message);
                None
            }
            (Value::Null, _) | (_, None) => {
                self.unexpected(node, expected);
                None
            }
            (_, text) => text,
        }
    }

    /// Reads a whole number above 0, at most `i64::MAX` as in Boulder.
    pub(super) fn positive(&mut self, node: &'n Node<'n>, name: &str) -> Option<u64> {
        self.whole(node, name, POSITIVE)
    }

    /// Reads a whole number in a range: in digits, or with `k`, `M` or `G` for thousands, millions and
    /// billions.
    pub(super) fn whole(
        &mut self,
        node: &'n Node<'n>,
        name: &str,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        if self.problems.are_too_many() {
            return None;
        }
        let written = self.scalar(node).unwrap_or_default();
        let must = match &node.value {
            Value::Unsigned(value) if range.contains(value) => return Some(*value),
            Value::Unsigned(value) => outside(&range, value < range.start()),
            Value::OtherNumber => wrong_number(written, &range),
            Value::Text(text) if text.parse::<u64>().is_ok() => {
                "must be a number without quotes".to_owned()
            }
            Value::Text(text) if let Some(value) = numbers::parse_multiple(text) => {
                if range.contains(&value) {
                    return Some(value);
                }
                outside(&range, value < *range.start())
            }
            _ => {
                self.unexpected(node, "a whole number, such as 250 or 10k");
                return None;
            }
        };
        self.error(node.at, format!("invalid {name} '{written}', {must}"));
        None
    }

    /// Reads one of the `known` names and returns its value.
    pub(super) fn choice<T: Copy, const N: usize>(
        &mut self,
        node: &'n Node<'n>,
        kind: &str,
        known: [(&str, T); N],
    ) -> Option<T> {
        let names = known.map(|(name, _)| name);
        let text = self.text(node, &nearest::alternatives(&names))?;
        let found = known.iter().find(|(name, _)| *name == text);
        if found.is_none() {
            self.error(node.at, nearest::unknown(kind, text, &names));
        }
        found.map(|(_, value)| *value)
    }

    pub(super) fn items(&mut self, node: &'n Node<'n>, expected: &str) -> Option<&'n [Node<'n>]> {
        if self.problems.are_too_many() {
            return None;
        }
        if let Value::Sequence(items) = &node.value {
            Some(items)
        } else {
            self.unexpected(node, expected);
            None
        }
    }

    /// Returns the items of a list, which must not be empty; a single value counts as a list of
    /// one.
    pub(super) fn one_or_more(&mut self, node: &'n Node<'n>, kind: &str) -> &'n [Node<'n>] {
        match &node.value {
            _ if self.problems.are_too_many() => &[],
            Value::Sequence(items) => {
                if items.is_empty() {
                    self.error(node.at, format!("no {kind}: name at least one"));
                }
                items
            }
            _ => std::slice::from_ref(node),
        }
    }

    /// Returns the entries of a mapping with arbitrary names. Reports and leaves out unusable ones:
    /// duplicates, and names that are not text.
    pub(super) fn entries(
        &mut self,
        node: &'n Node<'n>,
        expected: &str,
    ) -> Option<Vec<(Name<'n>, &'n Node<'n>)>> {
        let Value::Mapping(entries) = &node.value else {
            self.unexpected(node, expected);
            return None;
        };
        let mut seen = FirstPositions::default();
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

    /// Returns the entries of a mapping that allows only the `known` names.
    pub(super) fn fields(
        &mut self,
        node: &'n Node<'n>,
        expected: &str,
        known: &[&'static str],
    ) -> Option<Fields<'n>> {
        self.fields_of(node, expected, &known.iter().copied(), || known.to_vec())
    }

    /// Like `fields`, but suggests only the `suggested` names. Names may have underscores in place of hyphens.
    pub(super) fn fields_of(
        &mut self,
        node: &'n Node<'n>,
        expected: &str,
        names: &(impl Iterator<Item = &'static str> + Clone),
        suggested: impl Fn() -> Vec<&'static str>,
    ) -> Option<Fields<'n>> {
        let mut present = Vec::new();
        let mut misspelt = Vec::new();
        let mut seen = FirstPositions::default();
        for (name, value) in self.entries(node, expected)? {
            if self.problems.are_too_many() {
                return None;
            }
            let known = || names.clone();
            if let Some(text) = known().find(|known| is_spelled(known, name.text)) {
                if seen.is_first(self, text, name.at, || format!("'{text}'")) {
                    present.push((Name { text, ..name }, value));
                }
            } else if let Some(message) = foreign::traffic_server_option(name.text) {
                self.error(name.at, message);
            } else if known().any(|known| known == text::RATE) && text::is_valid(name.text) {
                let message = format!(
                    "'{}' comes after a ',' that ends the previous field: put the whole text of \
                     '{}' in quotes",
                    name.text,
                    text::RATE
                );
                self.error(name.at, message);
            } else {
                let suggested = suggested();
                self.error(name.at, nearest::unknown("field", name.text, &suggested));
                misspelt.extend(nearest::nearest(name.text, &suggested));
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

/// The first position of each key in a file.
pub(super) struct FirstPositions<K>(HashMap<K, Position>);

impl<K: Eq + Hash> FirstPositions<K> {
    /// Returns whether a key occurs for the first time. Otherwise reports the duplicate, with the first
    /// position; `describe` returns the key's description.
    pub(super) fn is_first(
        &mut self,
        reader: &mut Reader<'_, '_>,
        key: K,
        at: Position,
        describe: impl FnOnce() -> String,
    ) -> bool {
        match self.0.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(at);
                true
            }
            Entry::Occupied(entry) => {
                let first = reader.format_position(*entry.get(), at);
                let message = format!("duplicate {}, first at {first}", describe());
                reader.error(at, message);
                false
            }
        }
    }
}

impl<K> Default for FirstPositions<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

/// Returns whether a text is a name, possibly with underscores in place of hyphens, as in Traffic
/// Server.
fn is_spelled(name: &str, text: &str) -> bool {
    name == text || (text.contains('_') && name == text.replace('_', "-"))
}
