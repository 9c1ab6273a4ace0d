//! Reading a file of the configuration, which may be anything.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::fs::{FileTypeExt, OpenOptionsExt},
    path::Path,
};

/// The largest file read, in bytes; a million overrides take half of it.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Why a file cannot be read as text.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("cannot be read: {0}")]
    Io(#[source] io::Error),
    #[error("is a directory, not a file")]
    Directory,
    #[error("is not a regular file")]
    NotRegular,
    #[error("is larger than 64 MiB, which is the most a configuration file may have")]
    TooLarge,
    #[error("is a binary file, not YAML: it has a NUL byte at offset {0}")]
    Nul(usize),
    #[error("is not UTF-8 text: invalid byte at offset {0}")]
    NotUtf8(usize),
    #[error("is empty: limits or overrides are needed")]
    Empty,
}

/// The text of a file.
///
/// Regular files only, and pipes that are already open (`/dev/stdin`, `/dev/fd/N`, a shell's
/// `<(…)`): opening a named pipe would wait for its writer, and opening a device can do
/// anything.
pub(super) fn read(path: &Path) -> Result<String, Unreadable> {
    // Looked at before it is opened: opening alone starts a watchdog.
    let metadata = std::fs::metadata(path).map_err(Unreadable::Io)?;
    let kind = metadata.file_type();
    let open_pipe = kind.is_fifo() && is_descriptor(path);
    if kind.is_dir() {
        return Err(Unreadable::Directory);
    }
    if !kind.is_file() && !open_pipe {
        return Err(Unreadable::NotRegular);
    }
    let mut options = OpenOptions::new();
    options.read(true);
    if !open_pipe {
        // Should the name have come to stand for a named pipe since: do not wait for a writer.
        options.custom_flags(libc::O_NONBLOCK);
    }
    let file = options.open(path).map_err(Unreadable::Io)?;
    let metadata = file.metadata().map_err(Unreadable::Io)?;
    if !metadata.is_file() && !open_pipe {
        return Err(Unreadable::NotRegular);
    }
    if metadata.len() > MAX_BYTES {
        return Err(Unreadable::TooLarge);
    }
    text(read_at_most(file, MAX_BYTES)?)
}

/// Whether a path names one of this process's open files.
pub(crate) fn is_descriptor(path: &Path) -> bool {
    path == Path::new("/dev/stdin")
        || path.starts_with("/dev/fd")
        || path.starts_with("/proc/self/fd")
}

/// A file's content; its size may be unknown (a pipe) or change while it is read.
fn read_at_most(file: File, most: u64) -> Result<Vec<u8>, Unreadable> {
    let mut bytes = Vec::new();
    file.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(Unreadable::Io)?;
    if bytes.len() as u64 > most {
        return Err(Unreadable::TooLarge);
    }
    Ok(bytes)
}

fn text(bytes: Vec<u8>) -> Result<String, Unreadable> {
    // A binary file is rarely UTF-8; that it is binary says more.
    if let Some(offset) = bytes.iter().position(|byte| *byte == 0) {
        return Err(Unreadable::Nul(offset));
    }
    let text = String::from_utf8(bytes)
        .map_err(|error| Unreadable::NotUtf8(error.utf8_error().valid_up_to()))?;
    check(&text)?;
    Ok(text)
}

/// Whether a text may be that of a configuration.
pub(super) fn check(text: &str) -> Result<(), Unreadable> {
    if text.len() as u64 > MAX_BYTES {
        return Err(Unreadable::TooLarge);
    }
    if let Some(offset) = text.bytes().position(|byte| byte == 0) {
        return Err(Unreadable::Nul(offset));
    }
    if text.trim().is_empty() {
        return Err(Unreadable::Empty);
    }
    Ok(())
}
