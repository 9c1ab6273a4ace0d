//! A place for what a limiter pins.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use nix::{
    mount::{MsFlags, mount},
    sys::statfs::{BPF_FS_MAGIC, statfs},
};
use tempfile::TempDir;

/// Where BPF filesystems are mounted.
const MOUNTED: &str = "/sys/fs/bpf";

/// A directory of a BPF filesystem that nobody else has, for `limiter run --pin`. It goes with this
/// value, and whatever is pinned there is detached.
#[derive(Debug)]
pub struct PinDirectory {
    parent: TempDir,
}

impl PinDirectory {
    /// A new one, that the limiter has to make: only what it is to be made in is there.
    pub fn new() -> Result<Self> {
        let found = statfs(MOUNTED).with_context(|| format!("cannot look at {MOUNTED}"))?;
        if found.filesystem_type() != BPF_FS_MAGIC {
            let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
            mount(Some("bpf"), MOUNTED, Some("bpf"), flags, None::<&str>)
                .with_context(|| format!("cannot mount a BPF filesystem at {MOUNTED}"))?;
        }
        // Names in a BPF filesystem have no dots.
        let parent = tempfile::Builder::new()
            .prefix("limiter-test-")
            .tempdir_in(MOUNTED)
            .context("cannot make a directory for pins: it takes root")?;
        Ok(Self { parent })
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.parent.path().join("pins")
    }

    /// What makes `limiter run` pin here.
    #[must_use]
    pub fn argument(&self) -> String {
        format!("--pin={}", self.path().display())
    }

    /// The paths of all files that are pinned here.
    pub fn files(&self) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        list(&self.path(), &mut files)?;
        Ok(files)
    }
}

fn list(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            list(&entry.path(), files)?;
        } else {
            files.push(entry.path());
        }
    }
    Ok(())
}
