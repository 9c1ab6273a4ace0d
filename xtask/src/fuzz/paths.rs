//! The paths of files.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use crate::workspace;

/// Returns the directory of the targets' package.
pub(super) fn package() -> PathBuf {
    workspace::root().join("dev/fuzz")
}

/// Returns the directory for everything that fuzzing writes.
pub(super) fn output() -> PathBuf {
    workspace::target_dir().join("fuzz")
}

/// Returns a directory below that, and makes it if necessary.
pub(super) fn made(name: &str, target: &str) -> Result<PathBuf> {
    let directory = output().join(name).join(target);
    fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    Ok(directory)
}

/// Returns the names of the targets, sorted.
pub(super) fn targets() -> Result<Vec<String>> {
    let directory = package().join("fuzz_targets");
    let mut names =
        stems(&directory).with_context(|| format!("cannot list {}", directory.display()))?;
    names.sort();
    Ok(names)
}

fn stems(directory: &Path) -> io::Result<Vec<String>> {
    fs::read_dir(directory)?
        .map(|entry| {
            let path = entry?.path();
            Ok(path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into())
        })
        .collect()
}

/// Returns the path relative to the workspace's root, for people.
pub(super) fn shown(path: &Path) -> String {
    let relative = path.strip_prefix(workspace::root()).unwrap_or(path);
    relative.display().to_string()
}
