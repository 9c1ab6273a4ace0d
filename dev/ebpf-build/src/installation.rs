//! Lets builds wait for tools that are being installed.
//!
//! Installing bpf-linker takes as long as compiling the crates that need no object, so both happen at once; a build
//! script that comes too early waits here.

use std::{fs, fs::File, io, path::Path};

use crate::{Builder, error::Error};

/// An installation in progress. Builds of the same workspace wait until it is dropped or its process dies.
#[derive(Debug)]
pub struct Installation {
    _lock: File,
}

impl Installation {
    /// Begins, after earlier installations and waiting builds have ended.
    pub fn begin(workspace: &Path) -> Result<Self, Error> {
        let lock = locked(&Builder::directory(workspace), File::lock)?;
        Ok(Self { _lock: lock })
    }
}

/// Waits for the end of an installation, if one is in progress.
pub(crate) fn wait(target_dir: &Path) -> Result<(), Error> {
    locked(target_dir, File::lock_shared).map(drop)
}

fn locked(target_dir: &Path, lock: impl FnOnce(&File) -> io::Result<()>) -> Result<File, Error> {
    let path = target_dir.join("tools.lock");
    fs::create_dir_all(target_dir)
        .and_then(|()| File::create(&path))
        .and_then(|file| lock(&file).map(|()| file))
        .map_err(|source| Error::Write { path, source })
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread};

    use super::*;

    #[test]
    fn a_build_waits_until_the_installation_ends() {
        let directory = tempfile::tempdir().unwrap();
        let workspace = directory.path().to_owned();
        let installation = Installation::begin(&workspace).unwrap();
        let (sender, ended) = mpsc::channel();
        let build = thread::spawn({
            let target_dir = Builder::directory(&workspace);
            move || {
                wait(&target_dir).unwrap();
                sender.send(()).unwrap();
            }
        });
        // The lock is held, so the thread cannot have sent its message.
        assert!(ended.try_recv().is_err());
        drop(installation);
        ended.recv().unwrap();
        build.join().unwrap();
    }
}
