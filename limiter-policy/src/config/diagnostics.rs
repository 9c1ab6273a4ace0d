//! What is wrong with a configuration, and where.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{file, text};

/// A place in a file; lines and columns count from 1, columns in characters.
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
    /// The file, as it was named.
    pub file: Arc<str>,
    /// Where in it; `None`: the file as a whole.
    pub at: Option<Position>,
    /// What is wrong and what would be right.
    pub message: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:", self.file)?;
        if let Some(at) = self.at {
            write!(formatter, "{at}:")?;
        }
        formatter.write_str(" ")?;
        // A name from the file may hold a line break; one error stays one line.
        formatter.write_str(&text::one_line(&self.message))
    }
}

/// Everything that is wrong with a configuration: each file's errors in the order of their
/// position, the configuration file's first, then those of the files it names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Diagnostics {
    noted: Vec<Diagnostic>,
    files: Vec<PathBuf>,
}

impl Diagnostics {
    /// The diagnostics, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.noted.iter()
    }

    /// The files that were read, or could not be: one of them has to change before it is worth
    /// another try. Not those that came through a descriptor.
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

/// Where errors are noted while a configuration is read.
#[derive(Debug, Default)]
pub(super) struct Problems {
    /// The files in the order in which they were opened; a diagnostic's first part is the
    /// place of its file here.
    files: Vec<Arc<str>>,
    noted: Vec<(FileNumber, Diagnostic)>,
    /// The files that can be read again.
    read: Vec<PathBuf>,
}

/// Which of a configuration's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileNumber(usize);

/// A place in one of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) file: FileNumber,
    pub(super) at: Position,
}

impl Problems {
    /// Introduces a file.
    pub(super) fn open(&mut self, name: &str) -> FileNumber {
        self.files.push(Arc::from(name));
        FileNumber(self.files.len() - 1)
    }

    /// Notes that a file is read, whether or not that succeeds.
    pub(super) fn note_read(&mut self, path: &Path) {
        if !file::is_descriptor(path) {
            self.read.push(path.to_owned());
        }
    }

    /// The files that were read so far and can be read again.
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

    /// Notes an error at a place.
    pub(super) fn note_at(&mut self, place: Place, message: String) {
        self.note(place.file, Some(place.at), message);
    }

    /// How many errors were noted.
    pub(super) fn count(&self) -> usize {
        self.noted.len()
    }

    /// Whether nothing was noted.
    pub(super) fn is_empty(&self) -> bool {
        self.noted.is_empty()
    }

    /// What was noted, in order.
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
