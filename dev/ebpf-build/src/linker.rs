//! Finds bpf-linker.

use std::path::PathBuf;

use crate::places::Places;

/// The program's name, under which rustc also calls it.
pub(crate) const NAME: &str = "bpf-linker";

/// Returns the path of bpf-linker, if it is installed.
#[must_use]
pub fn find(places: &Places) -> Option<PathBuf> {
    places.find(NAME)
}
