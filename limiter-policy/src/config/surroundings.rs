//! The context of a configuration's text: its file, and access to the files that it names.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::{
    diagnostics::{FileNumber, Position},
    reader::Reader,
};
use crate::lists::Feeds;

pub(super) struct Surroundings<'s> {
    pub(super) file: FileNumber,
    /// The directory of named files; `None`: the text may not name files.
    pub(super) directory: Option<&'s Path>,
    /// The previous contents of feed files.
    pub(super) feeds: &'s Feeds,
    /// The time, to find stale feed files. Unused without a directory.
    pub(super) now: Timestamp,
}

/// Returns the path of a file named at a position; `None`: an error was reported, as the text may not name
/// files.
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
