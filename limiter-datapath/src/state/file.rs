//! The file of the saved state: loads it, saves it in one step, and sets unusable files aside.

mod aside;

use std::{
    ffi::OsString,
    fs::{self, File, FileType, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use limiter_policy::policy::TooManyUnits;
use thiserror::Error;

use super::{
    Snapshot,
    format::{self, FormatError, MAX_BYTES},
};

/// A file that holds a snapshot. It contains the table's secret, so only root may read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateFile(PathBuf);

/// There is a state file, but the limiter cannot resume from it.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The file was renamed.
    #[error("the state file {path} is set aside as {aside}: {reason}")]
    SetAside {
        /// The file.
        path: PathBuf,
        /// The new name.
        aside: PathBuf,
        /// The reason why it cannot be used.
        reason: Arc<Reason>,
    },
    /// The file stays unchanged, and no state is saved in its place.
    #[error(
        "the state file {path} can be neither used ({reason}) nor set aside ({source}): it stays as \
         it is, and no state is saved"
    )]
    InTheWay {
        /// The file.
        path: PathBuf,
        /// The reason why it cannot be used.
        reason: Arc<Reason>,
        /// The error of renaming it.
        source: io::Error,
    },
}

/// The reason why the limiter cannot resume from a state file.
#[derive(Debug, Error)]
pub enum Reason {
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[source] io::Error),
    /// The contents are not a snapshot.
    #[error(transparent)]
    Damaged(#[from] FormatError),
    /// The saved units leave too few numbers for the units of the configuration.
    #[error("cannot resume from it: {0}")]
    Unfit(#[from] TooManyUnits),
}

/// The snapshot was not saved; the file is unchanged.
#[derive(Debug, Error)]
pub enum SaveError {
    /// The system refused the write.
    #[error("cannot write the state file {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The snapshot cannot be encoded.
    #[error("cannot encode the state: {0}")]
    Encode(#[from] postcard::Error),
    /// The file would exceed the size limit for reading.
    #[error("the state has {0} bytes, but a state file holds at most {MAX_BYTES}")]
    TooLarge(u64),
}

impl StateFile {
    /// Names the file at `path`, which need not exist.
    #[must_use]
    pub const fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// The path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Loads the last saved snapshot; `None`: there is no file. Renames an unreadable or invalid
    /// file, so that the next save does not overwrite it.
    pub fn load(&self) -> Result<Option<Snapshot>, LoadError> {
        let (set_aside, reason) = match self.read() {
            Ok(None) => return Ok(None),
            Ok(Some(bytes)) => match format::decode(&bytes) {
                Ok(snapshot) => return Ok(Some(snapshot)),
                Err(reason) => (aside::damaged(&self.0), Reason::Damaged(reason)),
            },
            Err(error) => (aside::not_restored(&self.0), Reason::Unreadable(error)),
        };
        Err(self.refused(set_aside, Arc::new(reason)))
    }

    /// Renames the file, which may be intact, for that reason.
    #[must_use]
    pub fn refuse(&self, reason: Arc<Reason>) -> LoadError {
        self.refused(aside::not_restored(&self.0), reason)
    }

    fn refused(&self, set_aside: io::Result<PathBuf>, reason: Arc<Reason>) -> LoadError {
        let path = self.0.clone();
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
        // Check before opening, because opening alone has an effect on some devices.
        let Some(path) = target(&self.0)? else {
            return Ok(None);
        };
        let mut options = OpenOptions::new();
        // If a named pipe has replaced the file meanwhile, a blocking open would wait for a writer.
        let file = options
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(path)?;
        must_be_file(file.metadata()?.file_type())?;
        let mut bytes = Vec::new();
        // Read one byte more than the limit, so that a longer file is not taken for a snapshot.
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// Replaces the saved snapshot in one step: even after a crash, the file holds the old or the
    /// new one.
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
        // Only a regular file is replaced.
        let path = target(&self.0)?.unwrap_or_else(|| self.0.clone());
        let unfinished = beside(&path, ".unfinished");
        // A killed daemon may have left it.
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
        if let Err(error) = written.and_then(|()| fs::rename(&unfinished, &path)) {
            // It takes up room, and the disk may be full.
            let _ = fs::remove_file(&unfinished);
            return Err(error);
        }
        File::open(directory(&path))?.sync_all()
    }
}

/// The path of the file itself, with links resolved; `None`: there is no file.
fn target(path: &Path) -> io::Result<Option<PathBuf>> {
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
        Ok(target) => {
            must_be_file(fs::symlink_metadata(&target)?.file_type())?;
            Ok(Some(target))
        }
        // The link's target may not be mounted yet.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(io::Error::other("it is a link to a missing file"))
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

/// A path in the same directory, with `end` appended to the name.
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
