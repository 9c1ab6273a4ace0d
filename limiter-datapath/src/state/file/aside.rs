//! Renames unusable state files, so that no save overwrites them.

use std::{
    fs, io,
    os::unix::fs::FileTypeExt as _,
    path::{Path, PathBuf},
};

use super::{beside, directory};

/// The number of files of each kind that are kept for inspection.
const KEPT: usize = 3;

/// The suffix of a damaged file's name, before its number.
const DAMAGED: &str = ".damaged-";

/// The suffix of the name of a file that was not restored and may be intact, before its number.
const NOT_RESTORED: &str = ".not-restored-";

/// Renames a damaged file, and removes the oldest damaged ones.
pub(super) fn damaged(path: &Path) -> io::Result<PathBuf> {
    let numbers = numbers(path, DAMAGED)?;
    let aside = rename(path, DAMAGED, &numbers)?;
    let superfluous = (numbers.len() + 1).saturating_sub(KEPT);
    for number in &numbers[..superfluous] {
        fs::remove_file(beside(path, &format!("{DAMAGED}{number}")))?;
    }
    Ok(aside)
}

/// Renames a file that cannot be read or resumed from. Removes no earlier file: if there are too
/// many, the file keeps its name.
pub(super) fn not_restored(path: &Path) -> io::Result<PathBuf> {
    let found = fs::symlink_metadata(path)?.file_type();
    if !(found.is_file() || found.is_symlink() || found.is_fifo()) {
        return Err(io::Error::other(
            "another program may need it: name a file in `state`",
        ));
    }
    let numbers = numbers(path, NOT_RESTORED)?;
    if numbers.len() >= KEPT {
        return Err(io::Error::other(format!(
            "there are already {KEPT} such files: remove or restore {}",
            beside(path, &format!("{NOT_RESTORED}*")).display()
        )));
    }
    rename(path, NOT_RESTORED, &numbers)
}

fn rename(path: &Path, end: &str, numbers: &[u64]) -> io::Result<PathBuf> {
    let next = numbers.last().map_or(1, |last| last.saturating_add(1));
    let aside = beside(path, &format!("{end}{next}"));
    fs::rename(path, &aside)?;
    Ok(aside)
}

/// The numbers of the files set aside before, in ascending order.
fn numbers(path: &Path, end: &str) -> io::Result<Vec<u64>> {
    let prefix = beside(path, end);
    let prefix = prefix.file_name().unwrap_or_default().as_encoded_bytes();
    let mut numbers = Vec::new();
    for entry in fs::read_dir(directory(path))? {
        let name = entry?.file_name();
        let number = name.as_encoded_bytes().strip_prefix(prefix);
        numbers.extend(number.and_then(|number| str::from_utf8(number).ok()?.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}
