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
    /// The file's name, as it was given.
    pub file: Arc<str>,
    /// Where in it; `None`: the file as a whole.
    pub at: Option<Position>,
    /// The error, and what would be right.
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
    noted: Vec<Diagnostic>,
    files: Vec<PathBuf>,
}

impl Diagnostics {
    /// Returns the diagnostics, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.noted.iter()
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
        for (index, diagnostic) in self.noted.iter().enumerate() {
            if index > 0 {
                formatter.write_str("\n")?;
            }
            diagnostic.fmt(formatter)?;
        }
        Ok(())
    }
}

/// Collects errors while a configuration is read.
#[derive(Debug, Default)]
pub(super) struct Problems {
    /// The files, in the order in which they were opened; a [`FileNumber`] is an index into them.
    files: Vec<Arc<str>>,
    noted: Vec<(FileNumber, Diagnostic)>,
    /// The files that can be read again.
    read: Vec<PathBuf>,
    /// The file that another node pushes, which may name no others; `None`: there is none.
    pushed: Option<FileNumber>,
}

/// One of a configuration's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileNumber(usize);

/// A position in one of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FilePosition {
    pub(super) file: FileNumber,
    pub(super) at: Position,
}

impl Problems {
    /// Adds a file.
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

    /// Returns whether another node pushes a file.
    pub(super) fn is_pushed(&self, file: FileNumber) -> bool {
        self.pushed == Some(file)
    }

    /// Notes that a file is read, whether or not that succeeds.
    pub(super) fn note_read(&mut self, path: &Path) {
        if !file::is_descriptor(path) {
            self.read.push(path.to_owned());
        }
    }

    /// Returns the files that were read so far and can be read again.
    pub(super) fn files_read(&self) -> &[PathBuf] {
        &self.read
    }

    /// Notes an error in a file.
    pub(super) fn note(&mut self, file: FileNumber, at: Option<Position>, message: String) {
        let name = Arc::clone(&self.files[file.0]);
        self.noted.push((
            file,
            Diagnostic {
                file: name,
                at,
                message,
            },
        ));
    }

    /// Notes an error at a position in a file.
    pub(super) fn note_at(&mut self, position: FilePosition, message: String) {
        self.note(position.file, Some(position.at), message);
    }

    /// Tells a position to somebody who reads an error in a file, which need not be named again.
    pub(super) fn told(&self, position: FilePosition, reads: Option<FileNumber>) -> String {
        let at = position.at;
        if reads == Some(position.file) {
            at.to_string()
        } else {
            format!("{}:{at}", self.files[position.file.0])
        }
    }

    /// Returns how many errors were noted.
    pub(super) fn count(&self) -> usize {
        self.noted.len()
    }

    /// Returns whether no error was noted.
    pub(super) fn is_empty(&self) -> bool {
        self.noted.is_empty()
    }

    /// Returns the noted errors, in order.
    pub(super) fn into_diagnostics(mut self) -> Diagnostics {
        self.noted
            .sort_by_key(|(file, diagnostic)| (*file, diagnostic.at));
        let noted = self.noted.into_iter().map(|(_, diagnostic)| diagnostic);
        Diagnostics {
            noted: noted.collect(),
            files: self.read,
        }
    }
}
