//! Descriptions of the fields that a map of the configuration may have. A field is described once: by its name,
//! its line in the manual, its reader, and the reason why it may be misplaced. From the descriptions follow the
//! known names in errors, and the tables of the manual.

use std::{borrow::Cow, hash::Hash, ops::RangeInclusive, path::Path};

use super::{
    diagnostics::FilePosition,
    duration::{self, InvalidDuration},
    node::{Node, Value},
    reader::{Fields, FirstPositions, Name, Reader},
    variables,
};
use crate::{
    file::{self, FileError},
    text,
};

/// The field of an age, with Traffic Server's name.
pub(super) const MAX_AGE: &str = "max-age";

/// The values of a field that is true or false.
pub(super) const BOOLEANS: [(&str, bool); 2] = [("true", true), ("false", false)];

/// A field of a map that is read into a `T`.
pub(super) struct Field<T> {
    pub(super) name: &'static str,
    /// The values and, in brackets, the default, as a line of the manual.
    pub(super) manual: &'static str,
    read: Read<T>,
    misplacement: Misplacement<T>,
    /// Records that the value is unknown, as the field's name is misspelt.
    if_misspelt: fn(&mut T),
    then: Step<T>,
}

/// Reads the value of a field that is present. Reports errors, and leaves the default.
type Read<T> = fn(&mut T, &mut Given<'_, '_, '_>);

/// Says why the map may not have a field, in words that follow the field's name; `None`: it may. Depends only
/// on fields that are described before this one.
type Misplacement<T> = fn(&T) -> Option<String>;

/// Reads or checks several fields together, those before this one and itself.
type Step<T> = for<'n> fn(&mut T, &mut Reader<'n, '_>, &Fields<'n>);

impl<T> Field<T> {
    pub(super) const fn new(name: &'static str, manual: &'static str, read: Read<T>) -> Self {
        Self {
            name,
            manual,
            read,
            misplacement: |_| None,
            if_misspelt: |_| {},
            then: |_, _, _| {},
        }
    }

    /// Describes a field that a later step reads, together with others.
    pub(super) const fn part(name: &'static str, manual: &'static str) -> Self {
        Self::new(name, manual, |_, _| {})
    }

    /// Describes a field without a line of its own in the manual.
    pub(super) const fn unlisted(name: &'static str, read: Read<T>) -> Self {
        Self::new(name, "", read)
    }

    /// Describes a field that no map may have, but that users may expect. It has no line in the manual.
    pub(super) const fn refused(name: &'static str, misplacement: Misplacement<T>) -> Self {
        Self::part(name, "").unless(misplacement)
    }

    pub(super) const fn unless(self, misplacement: Misplacement<T>) -> Self {
        Self {
            misplacement,
            ..self
        }
    }

    pub(super) const fn if_misspelt(self, if_misspelt: fn(&mut T)) -> Self {
        Self {
            if_misspelt,
            ..self
        }
    }

    /// Adds a step after the field's turn, also if the field is absent.
    pub(super) const fn then(self, then: Step<T>) -> Self {
        Self { then, ..self }
    }
}

impl<T> AsRef<Self> for Field<T> {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// Reads a map of these fields into `target`, in the order of the descriptions. Returns the fields that are
/// present, for further checks; `None`: no map.
pub(super) fn read<'n, T, F: AsRef<Field<T>>>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    expected: &str,
    descriptions: &[F],
    target: &mut T,
) -> Option<Fields<'n>> {
    let descriptions = || descriptions.iter().map(F::as_ref);
    let names = descriptions().map(|field| field.name);
    let fields = reader.fields_of(node, expected, &names, || {
        let suggested = descriptions().filter(|field| (field.misplacement)(target).is_none());
        suggested.map(|field| field.name).collect()
    })?;
    for field in descriptions() {
        if let Some((name, node)) = fields.find(field.name) {
            if let Some(why) = (field.misplacement)(target) {
                reader.error(name.at, format!("'{}' {why}", field.name));
            } else {
                let mut given = Given {
                    reader,
                    name,
                    node,
                    fields: &fields,
                };
                (field.read)(target, &mut given);
            }
        } else if fields.is_misspelt(field.name) {
            (field.if_misspelt)(target);
        }
        (field.then)(target, reader, &fields);
    }
    Some(fields)
}

pub(super) fn names<T, F: AsRef<Field<T>>>(descriptions: &[F]) -> Vec<&'static str> {
    let fields = descriptions.iter().map(F::as_ref);
    fields.map(|field| field.name).collect()
}

/// A field that is present.
pub(super) struct Given<'r, 'n, 'p> {
    pub(super) reader: &'r mut Reader<'n, 'p>,
    pub(super) name: Name<'n>,
    pub(super) node: &'n Node<'n>,
    /// All fields of the map.
    pub(super) fields: &'r Fields<'n>,
}

impl<'n> Given<'_, 'n, '_> {
    pub(super) fn position(&self) -> FilePosition {
        self.reader.position(self.name.at)
    }

    /// Reports an error of the value.
    pub(super) fn error(&mut self, message: impl Into<String>) {
        self.reader.error(self.node.at, message);
    }

    pub(super) fn text(&mut self, expected: &str) -> Option<&'n str> {
        self.reader.text(self.node, expected)
    }

    /// Reads a text with variables of the environment.
    pub(super) fn text_with_variables(&mut self, expected: &str) -> Option<Cow<'n, str>> {
        variables::text(self.reader, self.node, expected)
    }

    /// Reads a map of these fields, as [`read`] does.
    pub(super) fn map<T>(
        &mut self,
        expected: &str,
        descriptions: &[Field<T>],
        target: &mut T,
    ) -> Option<Fields<'n>> {
        read(self.reader, self.node, expected, descriptions, target)
    }

    /// Reads the value inline, or from a file that it names.
    pub(super) fn inline_or_file<T>(
        &mut self,
        read: impl for<'a, 'b> FnOnce(&mut Reader<'a, 'b>, &'a Node<'a>) -> Option<T>,
    ) -> Option<T> {
        match &self.node.value {
            Value::Text(name) if !name.is_empty() => {
                let path = self.reader.named_path(self.node.at, name)?;
                named_file(self.reader, self.node, &path, read)
            }
            _ => read(self.reader, self.node),
        }
    }

    /// Reads one value or a list of different values, sorted; empty: invalid. `describe` gets a value and its text.
    pub(super) fn list<V: Clone + Ord + Hash>(
        &mut self,
        kind: &str,
        mut read: impl FnMut(&mut Reader<'n, '_>, &'n Node<'n>) -> Option<V>,
        describe: impl Fn(&V, &str) -> String,
    ) -> Vec<V> {
        let reader = &mut *self.reader;
        let items = reader.one_or_more(self.node, kind);
        let mut seen = FirstPositions::default();
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            let Some(value) = read(reader, item) else {
                continue;
            };
            let text = reader.scalar(item).unwrap_or_default();
            if seen.is_first(reader, value.clone(), item.at, || describe(&value, text)) {
                values.push(value);
            }
        }
        if values.len() != items.len() {
            return Vec::new();
        }
        values.sort_unstable();
        values
    }

    /// Reads a whole number in a range that `N` has room for.
    pub(super) fn whole<N: TryFrom<u64>>(&mut self, target: &mut N, range: RangeInclusive<u64>) {
        let number = self.reader.whole(self.node, self.name.text, range);
        if let Some(Ok(number)) = number.map(N::try_from) {
            *target = number;
        }
    }

    /// Reads one of the `known` names.
    pub(super) fn choice<C: Copy, const N: usize>(
        &mut self,
        target: &mut C,
        known: [(&str, C); N],
    ) {
        if let Some(chosen) = self.reader.choice(self.node, self.name.text, known) {
            *target = chosen;
        }
    }

    /// Reads an age in nanoseconds, with Traffic Server's notation; 0: no limit.
    pub(super) fn age(&mut self, target: &mut u64) {
        const EXPECTED: &str = "seconds, or a duration such as '5m'";
        let Some(written) = self.text(EXPECTED) else {
            return;
        };
        let age = match self.node.value {
            // As in Traffic Server, plain numbers are seconds.
            Value::Unsigned(0) => Ok(0),
            Value::Unsigned(_) => duration::parse(&format!("{written}s")),
            Value::Text(_) | Value::OtherNumber => duration::parse(written),
            _ => {
                self.reader.unexpected(self.node, EXPECTED);
                return;
            }
        };
        match age {
            Ok(ns) => *target = ns,
            Err(error) => {
                let right = match error {
                    InvalidDuration::NotPositive => {
                        "must not be negative; 0 turns aging off".to_owned()
                    }
                    error => error.to_string(),
                };
                self.error(format!("invalid {} '{written}', {right}", self.name.text));
            }
        }
    }

    /// Reads a duration, in nanoseconds.
    pub(super) fn duration(&mut self, target: &mut u64, range: &RangeInclusive<u64>) {
        let Some(written) = self.text("a duration, such as '10s' or '1h30m'") else {
            return;
        };
        let why = match duration::parse(written) {
            Ok(ns) if range.contains(&ns) => {
                *target = ns;
                return;
            }
            Ok(_) => {
                let (least, most) = (text::period(*range.start()), text::period(*range.end()));
                format!("must be from {least} to {most}")
            }
            Err(error) => error.to_string(),
        };
        self.error(format!("invalid {} '{written}', {why}", self.name.text));
    }
}

fn named_file<'n, T>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    path: &Path,
    read: impl for<'a, 'b> FnOnce(&mut Reader<'a, 'b>, &'a Node<'a>) -> Option<T>,
) -> Option<T> {
    reader.problems().record_file(path);
    // Errors about the file as a whole are reported at its name's position.
    let mut unreadable = |error: FileError| {
        reader.error(node.at, format!("the file '{}' {error}", path.display()));
        None
    };
    let text = match file::read(path) {
        Ok(text) => text,
        Err(error) => return unreadable(error),
    };
    match Node::parse(&text) {
        Ok(Node {
            value: Value::Null, ..
        }) => unreadable(FileError::Empty),
        Ok(root) => {
            let problems = reader.problems();
            let file = problems.open(&path.display().to_string());
            read(&mut reader.of_named_file(&text, file), &root)
        }
        Err(error) => {
            let problems = reader.problems();
            let file = problems.open(&path.display().to_string());
            problems.report(file, error.at, error.message);
            None
        }
    }
}

/// A table of fields in the manual.
#[derive(Clone, Debug)]
pub struct FieldTable {
    /// The page, a file in docs/.
    pub page: &'static str,
    /// The heading of the table's section.
    pub heading: &'static str,
    /// The name and the description of each field, in the table's order.
    pub rows: Vec<(&'static str, &'static str)>,
}

impl FieldTable {
    pub(super) fn new<T, F: AsRef<Field<T>>>(
        page: &'static str,
        heading: &'static str,
        descriptions: &[F],
    ) -> Self {
        let fields = descriptions.iter().map(F::as_ref);
        let fields = fields.filter(|field| !field.manual.is_empty());
        Self {
            page,
            heading,
            rows: fields.map(|field| (field.name, field.manual)).collect(),
        }
    }
}
