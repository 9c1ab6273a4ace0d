//! The errors of a configuration, and their positions.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{file, text};

/// A position in a file. Lines and columns count from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line.
    pub line: u64,
    /// The column.
    pub column: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.line, self.column)
    }
}

/// One thing that is wrong: `file:line:column: message`, on one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file's name, as given.
    pub file: Arc<str>,
    /// The position; `None`: the file as a whole.
    pub at: Option<Position>,
    /// The error and its correction.
    pub message: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:", self.file)?;
        if let Some(at) = self.at {
            write!(formatter, "{at}:")?;
        }
        formatter.write_str(" ")?;
        // A name from the file may contain a line break, but an error is one line.
        formatter.write_str(&text::one_line(&self.message))
    }
}

/// All errors of a configuration, by file and position: the configuration file first, then the
/// files it names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Diagnostics {
    reported: Vec<Diagnostic>,
    files: Vec<PathBuf>,
}

impl Diagnostics {
    /// Returns the diagnostics, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.reported.iter()
    }

    /// Returns the files that were read, or could not be. A retry makes sense once one of them
    /// changes. Files that came through a descriptor are not included.
    #[must_use]
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.reported.iter().enumerate() {
            if index > 0 {
                formatter.write_str("\n")?;
            }
            diagnostic.fmt(formatter)?;
        }
        Ok(())
    }
}

/// The most errors that are reported.
const MOST: usize = 100;

/// The most characters of an error. A quoted name may be as long as the file.
const LONGEST: usize = 2_000;

/// Collects errors while a configuration is read.
#[derive(Debug, Default)]
pub(super) struct Problems {
    /// The files, in the order in which they were opened; a [`FileNumber`] is an index into them.
    files: Vec<Arc<str>>,
    reported: Vec<(FileNumber, Diagnostic)>,
    /// How many errors were found, in the report or not.
    count: usize,
    /// The files that can be read again.
    read: Vec<PathBuf>,
    /// The file that another node pushes, which may name no other files.
    pushed: Option<FileNumber>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileNumber(usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FilePosition {
    pub(super) file: FileNumber,
    pub(super) at: Position,
}

impl Problems {
    pub(super) fn open(&mut self, name: &str) -> FileNumber {
        self.files.push(Arc::from(name));
        FileNumber(self.files.len() - 1)
    }

    /// Adds a file that another node pushes.
    pub(super) fn open_pushed(&mut self, name: &str) -> FileNumber {
        let file = self.open(name);
        self.pushed = Some(file);
        file
    }

    pub(super) fn is_pushed(&self, file: FileNumber) -> bool {
        self.pushed == Some(file)
    }

    /// Records that a file is opened, even if reading it fails.
    pub(super) fn record_file(&mut self, path: &Path) {
        if !file::is_descriptor(path) {
            self.read.push(path.to_owned());
        }
    }

    /// Returns the files that were read so far and can be read again.
    pub(super) fn files_read(&self) -> &[PathBuf] {
        &self.read
    }

    pub(super) fn report(&mut self, file: FileNumber, at: Option<Position>, message: String) {
        self.count += 1;
        if self.reported.len() == MOST {
            return;
        }
        let message = shortened(message);
        let name = Arc::clone(&self.files[file.0]);
        self.reported.push((
            file,
            Diagnostic {
                file: name,
                at,
                message,
            },
        ));
    }

    pub(super) fn report_at(&mut self, position: FilePosition, message: String) {
        self.report(position.file, Some(position.at), message);
    }

    /// Formats a position for an error in the file `reads`: a position in the same file needs no file name.
    pub(super) fn format_position(
        &self,
        position: FilePosition,
        reads: Option<FileNumber>,
    ) -> String {
        let at = position.at;
        if reads == Some(position.file) {
            at.to_string()
        } else {
            format!("{}:{at}", self.files[position.file.0])
        }
    }

    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Returns whether the errors reported so far fill the report, so further checks are useless.
    pub(super) const fn are_too_many(&self) -> bool {
        self.count > MOST
    }

    pub(super) fn is_empty(&self) -> bool {
        self.reported.is_empty()
    }

    pub(super) fn into_diagnostics(mut self) -> Diagnostics {
        self.reported
            .sort_by_key(|(file, diagnostic)| (*file, diagnostic.at));
        let are_too_many = self.are_too_many();
        let reported = self.reported.into_iter().map(|(_, diagnostic)| diagnostic);
        let mut reported: Vec<_> = reported.collect();
        if let (true, Some(last)) = (are_too_many, reported.last()) {
            reported.push(Diagnostic {
                file: Arc::clone(&last.file),
                at: None,
                message: format!("more than {MOST} errors: correct these first"),
            });
        }
        Diagnostics {
            reported,
            files: self.read,
        }
    }
}

/// Leaves out the middle of a long message: its beginning names the error, and its end the correction.
fn shortened(message: String) -> String {
    let Some((half, _)) = message.char_indices().nth(LONGEST / 2) else {
        return message;
    };
    match message.char_indices().nth_back(LONGEST / 2) {
        Some((rest, _)) if rest > half => format!("{}…{}", &message[..half], &message[rest..]),
        _ => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_up_to_a_number_and_a_length() {
        let mut problems = Problems::default();
        let file = problems.open("a.yaml");
        let at = |line| Some(Position { line, column: 1 });
        for line in 0..MOST as u64 {
            problems.report(file, at(line), "wrong".to_owned());
        }
        assert!(!problems.are_too_many());
        problems.report(file, at(7), "wrong".to_owned());
        assert!(problems.are_too_many());
        let reported = problems.into_diagnostics();
        assert_eq!(reported.iter().count(), MOST + 1);
        let last = reported.iter().last().unwrap().to_string();
        assert_eq!(last, "a.yaml: more than 100 errors: correct these first");

        let mut problems = Problems::default();
        let file = problems.open("a.yaml");
        let name = "ä".repeat(LONGEST);
        problems.report(
            file,
            at(1),
            format!("unknown field '{name}', write another"),
        );
        let reported = problems.into_diagnostics().to_string();
        assert!(
            reported.starts_with("a.yaml:1:1: unknown field 'ää"),
            "{reported}"
        );
        assert!(reported.ends_with("ä', write another"), "{reported}");
        assert!(reported.chars().count() < LONGEST + 30);
        assert_eq!(shortened("short".to_owned()), "short");
    }
}
