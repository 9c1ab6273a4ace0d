//! What surrounds a configuration's text: its file, and the files that it may name.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::{
    diagnostics::{FileNumber, Position},
    reader::Reader,
};
use crate::lists::Feeds;

/// The context of a configuration's text.
pub(super) struct Surroundings<'s> {
    /// The text's file.
    pub(super) file: FileNumber,
    /// The directory of the files that it names; `None`: it may not name files.
    pub(super) directory: Option<&'s Path>,
    /// The previous contents of feed files.
    pub(super) feeds: &'s Feeds,
    /// The time, to tell which feed files are stale. Without a directory it has no effect.
    pub(super) now: Timestamp,
}

/// Returns the path of a file that is named at a position; `None`, which is noted: no file may be
/// named there.
pub(super) fn named_path(
    reader: &mut Reader<'_, '_>,
    at: Position,
    name: &str,
    directory: Option<&Path>,
) -> Option<PathBuf> {
    let file = reader.position(at).file;
    let why = if directory.is_none() {
        "only a configuration file can name other files"
    } else if reader.problems().is_pushed(file) {
        "a file that is pushed cannot name others"
    } else {
        return Some(directory?.join(name));
    };
    reader.error(at, format!("cannot read the file '{name}': {why}"));
    None
}
