//! The file that a snapshot is kept in.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use thiserror::Error;

use super::{
    Snapshot,
    format::{self, FormatError, MAX_BYTES},
};

/// How many files that could not be read are kept for those who wonder.
const KEPT_DAMAGED: usize = 3;

/// Behind the name of a file that could not be read, before its number.
const DAMAGED: &str = ".damaged-";

/// A file that a snapshot is kept in. It has the table's secret, so it is root's alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateFile(PathBuf);

/// There is a state file, and nothing to go on with.
#[derive(Debug, Error)]
pub enum LoadError {
    /// It cannot be read, and is left as it is.
    #[error("cannot read the state file {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What is in it is no snapshot; it has another name now.
    #[error("the state file {path} is set aside as {aside}: {reason}")]
    SetAside {
        /// The file.
        path: PathBuf,
        /// What it is called now.
        aside: PathBuf,
        /// What is wrong with it.
        reason: FormatError,
    },
    /// What is in it is no snapshot, and it could not be given another name.
    #[error("the state file {path} is of no use ({reason}) and cannot be set aside: {source}")]
    NotSetAside {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: FormatError,
        /// What the system said.
        source: io::Error,
    },
}

/// The snapshot is not in the file; what was there before still is.
#[derive(Debug, Error)]
pub enum SaveError {
    /// The system refused.
    #[error("cannot write the state file {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The snapshot is none that can be written.
    #[error("cannot put the state into bytes: {0}")]
    Encode(#[from] postcard::Error),
    /// No such file would be read.
    #[error("the state would have {0} bytes, and a state file has {MAX_BYTES} at most")]
    TooLarge(u64),
}

impl StateFile {
    /// The file at `path`, which need not be there.
    #[must_use]
    pub const fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// What was saved last; `None`: there is no such file. One that cannot be understood is given
    /// another name, so that it is not lost when the next one is saved.
    pub fn load(&self) -> Result<Option<Snapshot>, LoadError> {
        let bytes = match self.read() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                let path = self.0.clone();
                return Err(LoadError::Unreadable { path, source });
            }
        };
        let reason = match format::decode(&bytes) {
            Ok(snapshot) => return Ok(Some(snapshot)),
            Err(reason) => reason,
        };
        let path = self.0.clone();
        Err(match self.set_aside() {
            Ok(aside) => LoadError::SetAside {
                path,
                aside,
                reason,
            },
            Err(source) => LoadError::NotSetAside {
                path,
                reason,
                source,
            },
        })
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        // A named pipe would have its opener wait for a writer.
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&self.0)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut bytes = Vec::new();
        // One byte more than a snapshot has: the rest would not make it one.
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Puts a snapshot in the place of the one before, in one step: whatever happens meanwhile,
    /// the one or the other is there.
    pub fn save(&self, snapshot: &Snapshot) -> Result<(), SaveError> {
        let bytes = format::encode(snapshot)?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(SaveError::TooLarge(bytes.len() as u64));
        }
        self.write(&bytes).map_err(|source| SaveError::Write {
            path: self.0.clone(),
            source,
        })
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let unfinished = self.beside(".unfinished");
        // That of a daemon that was killed.
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&unfinished)?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        if let Err(error) = written.and_then(|()| fs::rename(&unfinished, &self.0)) {
            // It takes up room that is perhaps what was missing.
            let _ = fs::remove_file(&unfinished);
            return Err(error);
        }
        File::open(self.directory())?.sync_all()
    }

    fn set_aside(&self) -> io::Result<PathBuf> {
        let mut numbers = self.damaged()?;
        numbers.sort_unstable();
        let next = numbers.last().map_or(1, |last| last.saturating_add(1));
        let aside = self.beside(&format!("{DAMAGED}{next}"));
        fs::rename(&self.0, &aside)?;
        let superfluous = (numbers.len() + 1).saturating_sub(KEPT_DAMAGED);
        for number in &numbers[..superfluous] {
            fs::remove_file(self.beside(&format!("{DAMAGED}{number}")))?;
        }
        Ok(aside)
    }

    /// The numbers of the files that were set aside before.
    fn damaged(&self) -> io::Result<Vec<u64>> {
        let prefix = self.beside(DAMAGED);
        let prefix = prefix.file_name().unwrap_or_default().as_encoded_bytes();
        let mut numbers = Vec::new();
        for entry in fs::read_dir(self.directory())? {
            let name = entry?.file_name();
            let number = name.as_encoded_bytes().strip_prefix(prefix);
            numbers
                .extend(number.and_then(|number| str::from_utf8(number).ok()?.parse::<u64>().ok()));
        }
        Ok(numbers)
    }

    /// A file in the same directory, its name that of this one with an end.
    fn beside(&self, end: &str) -> PathBuf {
        let mut name = OsString::from(&self.0);
        name.push(end);
        name.into()
    }

    fn directory(&self) -> &Path {
        match self.0.parent() {
            Some(directory) if directory != Path::new("") => directory,
            _ => Path::new("."),
        }
    }
}

#[cfg(test)]
mod tests;
