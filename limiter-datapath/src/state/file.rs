//! The file that a snapshot is kept in.

mod aside;

use std::{
    ffi::OsString,
    fs::{self, File, FileType, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use thiserror::Error;

use super::{
    Snapshot,
    format::{self, FormatError, MAX_BYTES},
};

/// A file that a snapshot is kept in. It has the table's secret, so it is root's alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateFile(PathBuf);

/// There is a state file, and nothing to go on with.
#[derive(Debug, Error)]
pub enum LoadError {
    /// It has another name now.
    #[error("the state file {path} is set aside as {aside}: {reason}")]
    SetAside {
        /// The file.
        path: PathBuf,
        /// What it is called now.
        aside: PathBuf,
        /// What is wrong with it.
        reason: Reason,
    },
    /// It is left as it is, and nothing is to be saved in its place.
    #[error(
        "the state file {path} cannot be used ({reason}) nor set aside ({source}): it is left as it \
         is, and no state is saved"
    )]
    InTheWay {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: Reason,
        /// Why it has still the same name.
        source: io::Error,
    },
}

/// Why nothing can be gone on with.
#[derive(Debug, Error)]
pub enum Reason {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[source] io::Error),
    /// What is in it is no snapshot.
    #[error(transparent)]
    Damaged(#[from] FormatError),
    /// What is in it does not fit what is to be gone on with.
    #[error("it cannot be resumed from: {0}")]
    Unfit(String),
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

    /// What was saved last; `None`: there is no such file. One that cannot be read or understood is
    /// given another name, so that it is not lost when the next one is saved.
    pub fn load(&self) -> Result<Option<Snapshot>, LoadError> {
        let reason = match self.read() {
            Ok(None) => return Ok(None),
            Ok(Some(bytes)) => match format::decode(&bytes) {
                Ok(snapshot) => return Ok(Some(snapshot)),
                Err(reason) => Reason::Damaged(reason),
            },
            Err(error) => Reason::Unreadable(error),
        };
        Err(self.refuse(reason))
    }

    /// Gives the file another name, for that reason.
    #[must_use]
    pub fn refuse(&self, reason: Reason) -> LoadError {
        let path = self.0.clone();
        let set_aside = match reason {
            Reason::Damaged(_) => aside::damaged(&path),
            Reason::Unreadable(_) | Reason::Unfit(_) => aside::not_restored(&path),
        };
        match set_aside {
            Ok(aside) => LoadError::SetAside {
                path,
                aside,
                reason,
            },
            Err(source) => LoadError::InTheWay {
                path,
                reason,
                source,
            },
        }
    }

    fn read(&self) -> io::Result<Option<Vec<u8>>> {
        // Before it is opened: that alone does something to some devices.
        let Some(place) = place(&self.0)? else {
            return Ok(None);
        };
        let mut options = OpenOptions::new();
        // One that has become a named pipe by now would have its opener wait for a writer.
        let file = options
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(place)?;
        must_be_file(file.metadata()?.file_type())?;
        let mut bytes = Vec::new();
        // One byte more than a snapshot has: the rest would not make it one.
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
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
        // What is no file is somebody's: it is not replaced.
        let place = place(&self.0)?.unwrap_or_else(|| self.0.clone());
        let unfinished = beside(&place, ".unfinished");
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
        if let Err(error) = written.and_then(|()| fs::rename(&unfinished, &place)) {
            // It takes up room that is perhaps what was missing.
            let _ = fs::remove_file(&unfinished);
            return Err(error);
        }
        File::open(directory(&place))?.sync_all()
    }
}

/// Where a file really is, to which a link may lead; `None`: there is none.
fn place(path: &Path) -> io::Result<Option<PathBuf>> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !found.is_symlink() {
        must_be_file(found)?;
        return Ok(Some(path.to_owned()));
    }
    match fs::canonicalize(path) {
        Ok(place) => {
            must_be_file(fs::symlink_metadata(&place)?.file_type())?;
            Ok(Some(place))
        }
        // What it leads to is perhaps not mounted yet.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(io::Error::other("it is a link to a file that is not there"))
        }
        Err(error) => Err(error),
    }
}

fn must_be_file(found: FileType) -> io::Result<()> {
    if found.is_file() {
        return Ok(());
    }
    let kind = if found.is_dir() {
        "a directory"
    } else if found.is_fifo() {
        "a named pipe"
    } else if found.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    Err(io::Error::other(format!("it is {kind}, not a file")))
}

/// A file in the same directory, its name that of the other with an end.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(end);
    name.into()
}

fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if directory != Path::new("") => directory,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests;
