//! The file with the fleet's keys, which may change while the daemon runs.

use std::{
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use limiter_fleet::Keys;
use limiter_policy::fleet::{self, SecretFileError};

/// How long after its last change the file is read: by then it is written to its end, and a later change has another
/// time.
const SETTLED: Duration = Duration::from_millis(200);

pub(crate) struct KeyFile {
    path: PathBuf,
    /// The modification time before the last reading.
    changed_at: Option<SystemTime>,
    /// The keys last read.
    pub(super) keys: Keys,
}

impl KeyFile {
    pub(crate) fn read(path: &Path) -> Result<Self, SecretFileError> {
        Ok(Self {
            path: path.to_owned(),
            // First, or a change during the reading would be taken for known.
            changed_at: changed_at(path),
            keys: fleet::read_keys(path)?,
        })
    }

    /// Reads the file again if it has changed; `None`: unchanged, or changed just now.
    pub(super) fn renew(&mut self) -> Option<Result<(), SecretFileError>> {
        let changed_at = changed_at(&self.path);
        // A time to come is of a clock that was set.
        let age = changed_at.and_then(|changed_at| changed_at.elapsed().ok());
        if changed_at == self.changed_at || age.is_some_and(|age| age < SETTLED) {
            return None;
        }
        self.changed_at = changed_at;
        Some(fleet::read_keys(&self.path).map(|keys| self.keys = keys))
    }
}

fn changed_at(path: &Path) -> Option<SystemTime> {
    let metadata = path.metadata();
    metadata.and_then(|metadata| metadata.modified()).ok()
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    /// A file that is still being written would give half of the keys, or none.
    #[test]
    fn a_file_is_read_once_it_has_settled() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("fleet.key");
        let write = |text: &str, ago: Duration| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(SystemTime::now() - ago).unwrap();
        };
        write(&"1a".repeat(32), Duration::from_secs(9));
        let mut file = KeyFile::read(&path).unwrap();
        assert!(file.renew().is_none());
        write("", Duration::ZERO);
        assert!(file.renew().is_none());
        write(&"2b".repeat(32), Duration::from_secs(5));
        assert!(file.renew().unwrap().is_ok());
        assert!(file.renew().is_none());
        write("half", Duration::from_secs(3));
        assert!(file.renew().unwrap().is_err());
        write(&"3c".repeat(32), Duration::from_secs(1));
        assert!(file.renew().unwrap().is_ok());
    }
}
