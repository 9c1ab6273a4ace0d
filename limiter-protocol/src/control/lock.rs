//! A lock file beside the control socket. It excludes a second daemon from the moment one begins to start until it
//! has ended; the socket itself exists only in between.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

/// How often to try to lock a file that others keep removing.
const ATTEMPTS: usize = 100;

/// Holds the lock; dropping it removes the file. A killed process leaves its file behind, unlocked.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// Takes the lock of a socket; `None` if another process holds it.
    pub(super) fn take(socket: &Path) -> io::Result<Option<Self>> {
        let mut path = OsString::from(socket);
        path.push(".lock");
        let path = PathBuf::from(path);
        for _ in 0..ATTEMPTS {
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
                .open(&path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(fs::TryLockError::WouldBlock) => return Ok(None),
                Err(fs::TryLockError::Error(error)) => return Err(error),
            }
            // The previous holder may have removed the file in between; then this lock guards
            // nothing.
            match fs::symlink_metadata(&path) {
                Ok(found) if found.ino() == file.metadata()?.ino() => {
                    return Ok(Some(Self { path, _file: file }));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other(format!(
            "cannot lock {}: other processes keep removing it",
            path.display()
        )))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The lock is still held, so the file is this process's.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        thread,
    };

    use super::*;

    #[test]
    fn nobody_has_it_beside_another() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let (holders, taken) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        if let Some(lock) = Lock::take(&socket).unwrap() {
                            assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                            taken.fetch_add(1, Ordering::SeqCst);
                            thread::yield_now();
                            holders.fetch_sub(1, Ordering::SeqCst);
                            drop(lock);
                        }
                    }
                });
            }
        });
        assert!(taken.into_inner() > 0);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_was_left_behind_is_taken_and_a_link_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let file = directory.path().join("socket.lock");
        fs::write(&file, "").unwrap();
        let lock = Lock::take(&socket).unwrap().unwrap();
        assert!(Lock::take(&socket).unwrap().is_none());
        drop(lock);
        assert!(!file.exists());
        std::os::unix::fs::symlink(directory.path().join("elsewhere"), &file).unwrap();
        Lock::take(&socket).unwrap_err();
        assert!(!directory.path().join("elsewhere").exists());
    }
}
