//! Directories of a BPF filesystem.

use std::{fs, io, os::unix::fs::DirBuilderExt as _, path::Path};

use rustix::fs::statfs;

use super::error::{PinsError, path_error};

/// Makes a directory in a BPF filesystem, and those above it.
pub(super) fn make(path: &Path) -> Result<(), PinsError> {
    let above = nearest(path)?;
    if !is_bpf(above).map_err(path_error(above))? {
        return Err(PinsError::NotBpf(path.to_owned()));
    }
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(path_error(path))
}

/// Returns the path itself, or the nearest existing path above it.
pub(super) fn nearest(path: &Path) -> Result<&Path, PinsError> {
    let mut above = path;
    while !above.try_exists().map_err(path_error(above))? {
        above = above.parent().unwrap_or(Path::new("/"));
    }
    // A relative path starts in the working directory.
    Ok(if above == Path::new("") {
        Path::new(".")
    } else {
        above
    })
}

pub(super) fn is_bpf(path: &Path) -> io::Result<bool> {
    Ok(statfs(path)?.f_type == libc::BPF_FS_MAGIC)
}

/// Removes a directory and its contents, if it exists.
pub(super) fn remove(path: &Path) -> Result<(), PinsError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(path_error(path)(error)),
        _ => Ok(()),
    }
}

/// Removes a pin, if it exists.
pub(super) fn remove_file(path: &Path) -> Result<(), PinsError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(path_error(path)(error)),
        _ => Ok(()),
    }
}

/// Returns the names in a directory; none if it does not exist.
pub(super) fn names(directory: &Path) -> Result<Vec<String>, PinsError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(path_error(directory)(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(path_error(directory))?.file_name();
        names.push(name.to_string_lossy().into_owned());
    }
    names.sort_unstable();
    Ok(names)
}

/// Returns the names that are numbers, in ascending order.
pub(super) fn numbers<T: std::str::FromStr + Ord>(directory: &Path) -> Result<Vec<T>, PinsError> {
    let names = names(directory)?;
    let mut numbers: Vec<T> = names.iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    Ok(numbers)
}
