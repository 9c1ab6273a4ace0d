//! The folder beside a configuration file: its files extend the configuration. Another node of the fleet may push
//! one of them, in place of the local file.
//!
//! A pushed file holds the settings that all nodes share. It has no section about a single node, such as its
//! interfaces, and names no other file: error messages quote files, so a remote user could read this node's
//! files through them.

use std::{
    fs, io,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::{Path, PathBuf},
};

use super::{
    diagnostics::{FileNumber, Problems},
    node::{Node, Value},
};
use crate::file;

/// The ending of file names that are read.
const ENDS: &[u8] = b".yaml";

/// The write permission for all users.
const BY_EVERYBODY: u32 = 0o002;

/// The reason why a folder, or a file in it, cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum FolderError {
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("is not a directory: its files would be joined to the configuration")]
    NotDirectory,
    #[error("may be written by everybody, who could lock out anybody: `chmod o-w` it")]
    Writable,
    #[error("is not read here, since its name ends in .yml: rename it to end in .yaml")]
    Yml,
}

/// Returns the folder of a configuration file: `/etc/limiter/limiter.d` for `/etc/limiter/limiter.yaml`.
pub(super) fn of(file: &Path) -> PathBuf {
    file.with_extension("d")
}

/// Returns whether a file of this name in the folder is read.
pub(super) fn is_name(name: &str) -> bool {
    let name = name.as_bytes();
    name.ends_with(ENDS) && !name.starts_with(b".") && !name.contains(&b'/')
}

/// Returns the folder's files that extend the configuration, in byte order of their names; none if the folder
/// does not exist.
///
/// # Errors
///
/// The unusable path and the reason.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>, (PathBuf, FolderError)> {
    let unusable = |error: FolderError| (folder.to_owned(), error);
    let found = match fs::metadata(folder) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unusable(error.into())),
    };
    if !found.is_dir() {
        return Err(unusable(FolderError::NotDirectory));
    }
    if found.mode() & BY_EVERYBODY != 0 {
        return Err(unusable(FolderError::Writable));
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| unusable(error.into()))? {
        let entry = entry.map_err(|error| unusable(error.into()))?;
        let (name, path) = (entry.file_name(), entry.path());
        // Left-overs of editors and packages begin with a dot, or have another ending.
        if name.as_bytes().starts_with(b".") {
            continue;
        }
        if name.as_bytes().ends_with(b".yml") {
            return Err((path, FolderError::Yml));
        }
        if !name.as_bytes().ends_with(ENDS) {
            continue;
        }
        // A missing or special file is reported when it is read.
        if fs::metadata(&path).is_ok_and(|found| found.mode() & BY_EVERYBODY != 0) {
            return Err((path, FolderError::Writable));
        }
        files.push(path);
    }
    files.sort_unstable();
    Ok(files)
}

/// A pushed file.
#[derive(Clone, Copy, Debug)]
pub struct PushedFile<'p> {
    /// The path of the file in the folder to replace, which need not exist.
    pub path: &'p Path,
    /// Its text.
    pub text: &'p str,
}

/// Reports sections other than these, which a pushed text may not have.
pub(super) fn check_pushed(
    text: &str,
    sections: &[&str],
    file: FileNumber,
    problems: &mut Problems,
) {
    if let Err(error) = file::check(text) {
        problems.report(file, None, error.to_string());
        return;
    }
    let root = match Node::parse(text) {
        Ok(root) => root,
        Err(error) => {
            problems.report(file, error.at, error.message);
            return;
        }
    };
    let Value::Mapping(entries) = root.value else {
        problems.report(file, Some(root.at), "expected a map of sections".to_owned());
        return;
    };
    for (name, _) in entries {
        let section = match &name.value {
            Value::Text(text) => text.replace('_', "-"),
            _ => String::new(),
        };
        if !sections.contains(&section.as_str()) {
            let message = format!(
                "'{section}' cannot be pushed, only {}: the rest is each node's own",
                sections.join(", ")
            );
            problems.report(file, Some(name.at), message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_the_name_of_its_file() {
        for (name, is_joined) in [
            ("fleet.yaml", true),
            (".yaml", false),
            ("../a.yaml", false),
            ("fleet.yml", false),
        ] {
            assert_eq!(is_name(name), is_joined, "{name}");
        }
        for (file, folder) in [
            ("/etc/limiter/limiter.yaml", "/etc/limiter/limiter.d"),
            ("new.yml", "new.d"),
            ("new", "new.d"),
            ("a.b.yaml", "a.b.d"),
        ] {
            assert_eq!(of(Path::new(file)), Path::new(folder));
        }
    }
}
