//! Reads configuration files. A path may lead to anything, such as a device, so check before opening.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::target::{self, ForeignLink, TargetError};

/// The largest configuration file, in MiB; a million overrides take half of it.
const MAX_MIB: u64 = 64;

const MIB: u64 = 1024 * 1024;

/// The reason why a file cannot be read as text.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system refused.
    #[error("cannot be read: {0}")]
    Io(#[source] io::Error),
    /// It is a directory.
    #[error("is a directory, not a file")]
    Directory,
    /// A symbolic link on the path belongs to neither root nor the file's owner.
    #[error(transparent)]
    ForeignLink(#[from] ForeignLink),
    /// It is neither a regular file nor an open pipe.
    #[error("is not a regular file")]
    NotRegular,
    /// It has more than this many MiB.
    #[error("is larger than {0} MiB, the maximum for such a file")]
    TooLarge(u64),
    /// Together with the files before it, it has more than this many MiB.
    #[error("is too much: with the files before it, it is larger than {0} MiB, the maximum")]
    TooLargeTogether(u64),
    /// It is binary; its first NUL byte is at this offset.
    #[error("is a binary file, not YAML: it has a NUL byte at offset {0}")]
    Nul(usize),
    /// It is not UTF-8; the first invalid byte is at this offset.
    #[error("is not UTF-8 text: invalid byte at offset {0}")]
    NotUtf8(usize),
    /// It has no content.
    #[error("is empty: limits or overrides are needed")]
    Empty,
}

impl From<TargetError> for FileError {
    fn from(error: TargetError) -> Self {
        match error {
            TargetError::Io(error) => Self::Io(error),
            TargetError::ForeignLink(link) => Self::ForeignLink(link),
        }
    }
}

pub(crate) fn read(path: &Path) -> Result<String, FileError> {
    text(read_at_most(path, MAX_MIB)?.bytes)
}

pub(crate) struct Content {
    pub(crate) bytes: Vec<u8>,
    /// Its kind and permissions.
    pub(crate) mode: u32,
    /// The time of its last change, if the system knows it.
    pub(crate) modified: Option<SystemTime>,
}

/// Reads a file of at most `most` MiB.
///
/// Accepts only regular files and pipes that are already open (`/dev/stdin`, `/dev/fd/N`, a shell's `<(…)`):
/// opening a named pipe would wait for its writer, and opening a device can have any effect. Follows symbolic
/// links only if root, the file's owner or the calling user made them.
pub(crate) fn read_at_most(path: &Path, most: u64) -> Result<Content, FileError> {
    let is_descriptor = is_descriptor(path);
    // Check before opening: just opening a watchdog device starts it.
    let target = if is_descriptor {
        None
    } else {
        Some(target::open(path)?)
    };
    let metadata = match &target {
        Some(target) => fs::metadata(opened(target)),
        None => fs::metadata(path),
    };
    let metadata = metadata.map_err(FileError::Io)?;
    let kind = metadata.file_type();
    let open_pipe = kind.is_fifo() && is_descriptor;
    if kind.is_dir() {
        return Err(FileError::Directory);
    }
    if !kind.is_file() && !open_pipe {
        return Err(FileError::NotRegular);
    }
    let file = match &target {
        // The file may have a lease: do not wait for its holder.
        Some(target) => OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(opened(target)),
        None => File::open(path),
    };
    let file = file.map_err(FileError::Io)?;
    if metadata.len() > most * MIB {
        return Err(FileError::TooLarge(most));
    }
    // The size may be unknown (a pipe) or change while we read.
    let mut bytes = Vec::new();
    file.take(most * MIB + 1)
        .read_to_end(&mut bytes)
        .map_err(FileError::Io)?;
    if bytes.len() as u64 > most * MIB {
        return Err(FileError::TooLarge(most));
    }
    Ok(Content {
        bytes,
        mode: metadata.permissions().mode(),
        modified: metadata.modified().ok(),
    })
}

fn opened(file: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Returns whether a path names one of this process's open files.
#[must_use]
pub fn is_descriptor(path: &Path) -> bool {
    path == Path::new("/dev/stdin")
        || path.starts_with("/dev/fd")
        || path.starts_with("/proc/self/fd")
}

fn text(bytes: Vec<u8>) -> Result<String, FileError> {
    // A binary file is rarely UTF-8 either, but "binary" says more.
    if let Some(offset) = bytes.iter().position(|byte| *byte == 0) {
        return Err(FileError::Nul(offset));
    }
    let text = String::from_utf8(bytes)
        .map_err(|error| FileError::NotUtf8(error.utf8_error().valid_up_to()))?;
    check(&text)?;
    Ok(text)
}

/// Checks the total size of one configuration's files.
pub(crate) const fn check_together(bytes: usize) -> Result<(), FileError> {
    if bytes as u64 > MAX_MIB * MIB {
        return Err(FileError::TooLargeTogether(MAX_MIB));
    }
    Ok(())
}

/// Checks that a text can be a configuration.
pub(crate) fn check(text: &str) -> Result<(), FileError> {
    if text.len() as u64 > MAX_MIB * MIB {
        return Err(FileError::TooLarge(MAX_MIB));
    }
    if let Some(offset) = text.bytes().position(|byte| byte == 0) {
        return Err(FileError::Nul(offset));
    }
    if text.trim().is_empty() {
        return Err(FileError::Empty);
    }
    Ok(())
}
