//! Makes, checks and removes directories of a BPF filesystem.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::Path,
};

use rustix::{fs::statfs, process::geteuid};

use super::error::{PinsError, path_error};

/// The write permissions of the group and of others.
const BY_OTHERS: u32 = 0o022;

/// The sticky bit: each user may remove only their own entries.
const STICKY: u32 = 0o1000;

/// Makes a directory in a BPF filesystem, and its missing parents.
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

/// Checks that only root or the calling user can have made or filled a directory. The limiter takes over
/// pinned programs, so another user's pin would run as ours; and a user who removes pins ends the
/// enforcement.
pub(super) fn check_owner(path: &Path) -> Result<(), PinsError> {
    let found = fs::symlink_metadata(path).map_err(path_error(path))?;
    if !found.is_dir() {
        return Err(PinsError::NoDirectory(path.to_owned()));
    }
    check_maker(path, &found, 0)?;
    // A user with write permission in a parent can replace the directory, unless the parent is sticky.
    for above in path
        .ancestors()
        .skip(1)
        .filter(|above| *above != Path::new(""))
    {
        if !is_bpf(above).map_err(path_error(above))? {
            break;
        }
        let found = fs::metadata(above).map_err(path_error(above))?;
        check_maker(above, &found, STICKY)?;
    }
    Ok(())
}

/// Checks that a directory belongs to root or this user, and that others may not write to it, unless it has
/// a mode bit in `harmless`.
fn check_maker(path: &Path, found: &fs::Metadata, harmless: u32) -> Result<(), PinsError> {
    let owner = found.uid();
    if owner != 0 && owner != geteuid().as_raw() {
        let path = path.to_owned();
        return Err(PinsError::NotOurs { path, owner });
    }
    let mode = found.mode() & 0o7777;
    if mode & BY_OTHERS != 0 && mode & harmless == 0 {
        let path = path.to_owned();
        return Err(PinsError::Writable { path, mode });
    }
    Ok(())
}

/// The path itself, or its nearest existing parent.
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

pub(super) fn remove(path: &Path) -> Result<(), PinsError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(path_error(path)(error)),
        _ => Ok(()),
    }
}

pub(super) fn remove_file(path: &Path) -> Result<(), PinsError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(path_error(path)(error)),
        _ => Ok(()),
    }
}

/// The names in a directory; empty if it does not exist.
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

/// The names that are numbers, in ascending order.
pub(super) fn numbers<T: std::str::FromStr + Ord>(directory: &Path) -> Result<Vec<T>, PinsError> {
    let names = names(directory)?;
    let mut numbers: Vec<T> = names.iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    Ok(numbers)
}
