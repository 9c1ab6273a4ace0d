//! Finds bpf-linker.

use std::path::PathBuf;

use crate::search_path::SearchPath;

/// The program's name, under which rustc also calls it.
pub(crate) const NAME: &str = "bpf-linker";

/// Returns the path of bpf-linker, if it is installed.
#[must_use]
pub fn find(search_path: &SearchPath) -> Option<PathBuf> {
    search_path.find(NAME)
}
