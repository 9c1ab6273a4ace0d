//! A disk that hangs.

use std::{
    fs::{self, File},
    path::PathBuf,
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

/// A file system in a file, which can be frozen. A process that writes to it then blocks, and not even
/// SIGKILL ends the wait.
#[derive(Debug)]
pub struct Disk(TempDir);

impl Disk {
    /// Makes an empty, working file system.
    pub fn new() -> Result<Self> {
        let disk = Self(tempfile::tempdir()?);
        let image = disk.0.path().join("image");
        File::create(&image)?.set_len(4 << 20)?;
        run(Command::new("mkfs.ext4").arg("-q").arg(&image))?;
        fs::create_dir(disk.root())?;
        let mut mount = Command::new("mount");
        run(mount.args(["-o", "loop"]).arg(&image).arg(disk.root()))?;
        Ok(disk)
    }

    /// Returns its root directory.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.0.path().join("root")
    }

    /// Freezes the file system.
    pub fn freeze(&self) -> Result<()> {
        run(Command::new("fsfreeze").arg("--freeze").arg(self.root()))
    }

    /// Thaws the file system. Fails if it is not frozen.
    pub fn thaw(&self) -> Result<()> {
        run(Command::new("fsfreeze").arg("--unfreeze").arg(self.root()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A daemon may still have an open file there.
        if let Err(error) = run(Command::new("umount").arg("--lazy").arg(self.root())) {
            eprintln!("{error:#}");
        }
    }
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output();
    let output = output.with_context(|| format!("cannot run {command:?}"))?;
    ensure!(output.status.success(), "{command:?} fails: {output:?}");
    Ok(())
}
