//! The file with the fleet's keys, which may change while the daemon runs.

use std::{
    path::{Path, PathBuf},
    time::SystemTime,
};

use limiter_fleet::Keys;
use limiter_policy::fleet::{self, SecretFileError};

pub(super) struct KeyFile {
    path: PathBuf,
    /// The modification time of the last reading.
    changed_at: Option<SystemTime>,
}

impl KeyFile {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            changed_at: changed_at(path),
        }
    }

    /// Reads the file again if it has changed; `None`: unchanged.
    pub(super) fn renewed(&mut self) -> Option<Result<Keys, SecretFileError>> {
        let changed_at = changed_at(&self.path);
        if changed_at == self.changed_at {
            return None;
        }
        self.changed_at = changed_at;
        Some(fleet::read_keys(&self.path))
    }
}

fn changed_at(path: &Path) -> Option<SystemTime> {
    let metadata = path.metadata();
    metadata.and_then(|metadata| metadata.modified()).ok()
}
