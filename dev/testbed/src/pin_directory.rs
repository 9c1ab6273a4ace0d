//! A directory for a limiter's pins.

use std::{
    fs,
    path::{Path, PathBuf},
    process,
    sync::Once,
};

use anyhow::{Context as _, Result};
use nix::{
    mount::{MsFlags, mount},
    sys::statfs::{BPF_FS_MAGIC, statfs},
};
use tempfile::TempDir;

/// The mount point of the BPF filesystem.
const MOUNTED: &str = "/sys/fs/bpf";

/// The start of directories' names; the id of the process that made the directory follows.
const PREFIX: &str = "limiter-test-";

/// A unique directory of a BPF filesystem, for `limiter run --pin`. It is removed on drop, which detaches
/// everything pinned there.
#[derive(Debug)]
pub struct PinDirectory {
    parent: TempDir,
}

impl PinDirectory {
    /// Makes a unique parent directory. The limiter makes the directory itself.
    pub fn new() -> Result<Self> {
        static ABANDONED: Once = Once::new();
        let found = statfs(MOUNTED).with_context(|| format!("cannot look at {MOUNTED}"))?;
        if found.filesystem_type() != BPF_FS_MAGIC {
            let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
            mount(Some("bpf"), MOUNTED, Some("bpf"), flags, None::<&str>)
                .with_context(|| format!("cannot mount a BPF filesystem at {MOUNTED}"))?;
        }
        ABANDONED.call_once(remove_abandoned);
        // Names in a BPF filesystem have no dots.
        let parent = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{}-", process::id()))
            .tempdir_in(MOUNTED)
            .context("cannot make a directory for pins: it takes root")?;
        Ok(Self { parent })
    }

    /// Returns the path of the directory.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.parent.path().join("pins")
    }

    /// Returns the argument that makes `limiter run` pin here.
    #[must_use]
    pub fn argument(&self) -> String {
        format!("--pin={}", self.path().display())
    }

    /// Returns the paths of all files pinned here.
    pub fn files(&self) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        list(&self.path(), &mut files)?;
        Ok(files)
    }
}

/// Removes the directories of killed processes. Their pinned programs stay attached to the root cgroup, which
/// takes 64: a few interrupted runs would leave no room for others.
fn remove_abandoned() {
    let Ok(entries) = fs::read_dir(MOUNTED) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let process = rest.and_then(|rest| rest.split_once('-'));
        if let Some((process, _)) = process
            && process.parse::<u32>().is_ok()
            && !Path::new("/proc").join(process).exists()
        {
            // Another process may remove it at the same time.
            let _ = fs::remove_dir_all(entry.path());
        }
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
