//! Inspects pins without taking them. A permission error does not mean that there are none.

use std::{fs, io, path::Path};

use super::{
    INTERFACES, Pins, PinsError,
    directory::{check_owner, is_bpf, nearest},
    error::path_error,
};

impl Pins {
    /// Opens a directory for reading, even if another process has taken it; `None`: it has no pins.
    pub fn find(directory: &Path) -> Result<Option<Self>, PinsError> {
        let found = match fs::metadata(directory.join(INTERFACES)) {
            Ok(found) => found.is_dir(),
            Err(error) if is_absence(&error) => false,
            Err(source) => {
                let path = directory.to_owned();
                return Err(PinsError::Forbidden { path, source });
            }
        };
        if found {
            check_owner(directory)?;
        }
        Ok(found.then(|| Self {
            directory: directory.to_owned(),
            lock: None,
        }))
    }

    /// Whether pins in a directory would be visible: it is, or would be, in a BPF filesystem.
    pub fn can_be_seen(directory: &Path) -> Result<bool, PinsError> {
        let above = nearest(directory)?;
        is_bpf(above).map_err(path_error(above))
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
