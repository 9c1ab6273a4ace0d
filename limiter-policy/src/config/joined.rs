//! Joins the files of one configuration: their texts end to end, and their sections.
//!
//! Positions count through the joined text, so readers of sections need not know about files. Errors are
//! translated back to a position in one file.

use std::{collections::HashMap, ops::Range};

use super::{
    diagnostics::{FileNumber, FilePosition, Position, Problems},
    node::{Node, Value},
};
use crate::file::FileError;

/// The texts of files, end to end.
pub(super) struct Texts {
    text: String,
    parts: Vec<Part>,
}

/// Whether a section may occur in several files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joinable {
    No,
    /// As a map or a list.
    Items,
    /// As a list, or as a single item in place of one.
    ItemOrItems,
}

#[derive(Debug)]
pub(super) struct Part {
    file: FileNumber,
    /// The number of its first line.
    line: u64,
    bytes: Range<usize>,
}

/// Maps positions to files.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lines<'t> {
    /// All lines belong to one file.
    Of(FileNumber),
    /// The parts of several files, in the order of their lines.
    Joined(&'t [Part]),
}

impl Texts {
    pub(super) fn new(file: FileNumber, text: String) -> Self {
        let part = Part {
            file,
            line: 0,
            bytes: 0..text.len(),
        };
        Self {
            text,
            parts: vec![part],
        }
    }

    pub(super) fn push(&mut self, file: FileNumber, text: &str) {
        let start = self.text.len();
        self.text.push_str(text);
        self.parts.push(Part {
            file,
            // No text has more line breaks than bytes.
            line: start as u64 + self.parts.len() as u64,
            bytes: start..self.text.len(),
        });
    }

    pub(super) const fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn lines(&self) -> Lines<'_> {
        Lines::Joined(&self.parts)
    }

    /// Parses the texts into one tree with the sections of all files. Only the first text must have content.
    /// `None`: errors were reported.
    pub(super) fn parse<'t>(
        &'t self,
        joinable: fn(&str) -> Joinable,
        problems: &mut Problems,
    ) -> Option<Node<'t>> {
        let before = problems.count();
        let mut joining = Joiner {
            lines: self.lines(),
            joinable,
            seen: HashMap::new(),
        };
        let mut all: Option<Node<'t>> = None;
        for (number, part) in self.parts.iter().enumerate() {
            let mut root = match Node::parse(&self.text[part.bytes.clone()]) {
                Ok(root) => root,
                Err(error) => {
                    problems.report(part.file, error.at, error.message);
                    continue;
                }
            };
            root.shift(part.bytes.start, part.line);
            match root.value {
                Value::Null if number == 0 => {
                    problems.report(part.file, None, FileError::Empty.to_string());
                }
                // A file may consist of comments alone.
                Value::Null => {}
                _ if self.parts.len() == 1 => all = Some(root),
                _ => joining.add(&mut all, root, problems),
            }
        }
        all.filter(|_| problems.count() == before)
    }
}

impl Lines<'_> {
    /// Returns a position's file, and the position in that file.
    pub(super) fn position(self, at: Position) -> FilePosition {
        match self {
            Self::Of(file) => FilePosition { file, at },
            Self::Joined(parts) => {
                let later = parts.partition_point(|part| part.line < at.line);
                let part = &parts[later.saturating_sub(1)];
                FilePosition {
                    file: part.file,
                    at: Position {
                        line: at.line.saturating_sub(part.line),
                        ..at
                    },
                }
            }
        }
    }
}

struct Joiner<'t> {
    lines: Lines<'t>,
    joinable: fn(&str) -> Joinable,
    /// The index and the latest position of each joinable section, by name.
    seen: HashMap<String, (usize, FilePosition)>,
}

impl Joiner<'_> {
    /// Adds the sections of a file. The reader later refuses sections that are unknown or may occur only
    /// once.
    fn add<'t>(&mut self, all: &mut Option<Node<'t>>, root: Node<'t>, problems: &mut Problems) {
        let (at, value) = (root.at, root.value);
        let Value::Mapping(entries) = value else {
            let at = self.lines.position(at);
            problems.report_at(at, "expected a map of sections".to_owned());
            return;
        };
        let all = all.get_or_insert_with(|| Node::mapping(at));
        let Value::Mapping(sections) = &mut all.value else {
            return;
        };
        for (name, mut value) in entries {
            let text = match &name.value {
                Value::Text(text) => text.replace('_', "-"),
                _ => String::new(),
            };
            let joinable = (self.joinable)(&text);
            if joinable == Joinable::No {
                sections.push((name, value));
                continue;
            }
            let at = self.lines.position(name.at);
            let Some((index, last)) = self.seen.get_mut(&text) else {
                self.seen.insert(text, (sections.len(), at));
                sections.push((name, value));
                continue;
            };
            let (first, into) = &mut sections[*index];
            if last.file == at.file {
                let first = problems.format_position(*last, Some(at.file));
                problems.report_at(at, format!("duplicate '{text}', first at {first}"));
                continue;
            }
            *last = at;
            if joinable == Joinable::ItemOrItems {
                into.make_list();
                value.make_list();
            }
            if !into.join(value) {
                let first = problems.format_position(self.lines.position(first.at), None);
                let message = format!(
                    "'{text}' has another form than at {first}: in several files it must be a map in \
                     each, or a list in each, and no file's name"
                );
                problems.report_at(at, message);
            }
        }
    }
}
